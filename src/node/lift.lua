-- Shared by the scripts that raise a fencing counter (P9): put before each of them.
--
-- lift(key, to, retention, max_ttl) makes the counter under `key` at least `to`, with an expiry of
-- at least `retention` milliseconds and until the clock has passed it by `max_ttl`. Says whether it
-- is; `false` for a `to` beyond the clock and max_ttl, which is refused rather than cut. A counter
-- that is no number is an error.
local function lift(key, to, retention, max_ttl)
  local time = redis.call('TIME')
  local floor = time[1] * 1048576
  to = tonumber(to)
  -- By the exact time: a node that has not seen the present second begin must take its numbers.
  if to > floor + time[2] * 1.048576 + max_ttl * 1048.576 then
    return false
  end
  local counter = tonumber(redis.call('GET', key) or 0)
  if not (counter and counter >= 0) then
    error('NOCOUNTER ' .. key .. ' holds no fencing counter')
  end
  if counter < to then
    local past = math.ceil((to - floor) / 1048.576) + max_ttl
    local keep = math.max(tonumber(retention), past)
    redis.call('SET', key, string.format('%.0f', to), 'PX', string.format('%.0f', keep))
  end
  return true
end
