-- Sets the lock's key where it is absent, and moves its fencing counter forward (P9).
--
-- KEYS[1]  the lock's key, which is also the channel of its notes
-- KEYS[2]  its counter, in the same cluster slot; left out without fencing
-- ARGV[1]  owner token            ARGV[2]  TTL in milliseconds
-- ARGV[3]  hint: the largest counter that the client knows, or 0
-- ARGV[4]  retention of the counter in milliseconds
-- ARGV[5]  max_ttl in milliseconds
-- ARGV[6]  block: how many numbers the grant reserves
-- ARGV[7]  '1': tell those who listen that it is taken
-- Returns  { 1, counter, seconds, microseconds }  granted; counter is the block's last number
--          { 0, owner, left, seconds, microseconds }  refused: whose key it is, and its PTTL
--          seconds and microseconds are this node's TIME.
--
-- The counter is read before anything is written: one of another type, or that cannot be counted
-- on exactly, ends the script with an error and leaves all as it is. Our own key, set by an earlier
-- try of the same round, counts as a grant. A hint beyond the clock and max_ttl is not believed.
local call = redis.call
local time = call('TIME')
local seconds = tonumber(time[1])
local floor = seconds * 1048576
local old = KEYS[2] and call('GET', KEYS[2])
local counter = 0
if old then
  counter = tonumber(old)
  local most = 9007199254740992 - ARGV[6]
  if not (counter and counter >= 0 and counter <= most and counter == math.floor(counter)) then
    return redis.error_reply('NOCOUNTER ' .. KEYS[2] .. ' holds no fencing counter')
  end
end
if not call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  local owner = call('GET', KEYS[1])
  if owner ~= ARGV[1] then
    return { 0, owner, call('PTTL', KEYS[1]), seconds, tonumber(time[2]) }
  end
end
if ARGV[7] == '1' then
  redis.pcall('PUBLISH', KEYS[1], '1 taken ' .. string.sub(ARGV[1], 1, 8) .. ' ' .. ARGV[2])
end
if not KEYS[2] then
  return { 1, 0, seconds, tonumber(time[2]) }
end
if ARGV[3] ~= '0' then
  local hint = tonumber(ARGV[3])
  if hint > counter and hint <= floor + time[2] * 1.048576 + ARGV[5] * 1048.576 then
    counter = hint
  end
end
counter = counter + ARGV[6]
-- The counter is kept until the clock has passed it by max_ttl: then it gives larger numbers alone.
local past, keep = tonumber(ARGV[5]), ARGV[4]
if counter <= floor then
  counter = floor
else
  past = past + math.ceil((counter - floor) / 1048.576)
end
if past > tonumber(keep) then
  keep = string.format('%.0f', past)
end
call('SET', KEYS[2], string.format('%.0f', counter), 'PX', keep)
return { 1, counter, seconds, tonumber(time[2]) }
