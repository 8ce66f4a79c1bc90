-- Lets a fenced write through, or refuses it, in one step.
--
-- KEYS[1]  a hash: field `fence` is the highest token seen, field `value` what was written last
-- ARGV[1]  the token, in decimal digits
-- ARGV[2]  the new value; absent: check the token and note it, write nothing else
-- Returns  { what, text }; what is
--          1 accepted, 0 stale and the text the highest token, -1 the key holds something else
--          and the text says what. Only the first changes anything.
--
-- Lua's numbers are exact to 2^53 only, and tokens have 64 bits: compare two halves of ten digits.
local function halves(digits)
  local padded = string.rep('0', 20 - #digits) .. digits
  return tonumber(string.sub(padded, 1, 10)), tonumber(string.sub(padded, 11))
end

local function lower(a, b)
  local a_high, a_low = halves(a)
  local b_high, b_low = halves(b)
  return a_high < b_high or (a_high == b_high and a_low < b_low)
end

local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'hash' then
  local highest = redis.call('HGET', KEYS[1], 'fence')
  if not highest or #highest > 20 or not string.match(highest, '^%d+$') then
    return { -1, 'a hash without a fencing token' }
  end
  if lower(ARGV[1], highest) then
    return { 0, highest }
  end
elseif kind ~= 'none' then
  return { -1, 'a ' .. kind }
end
if ARGV[2] then
  redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'value', ARGV[2])
else
  redis.call('HSET', KEYS[1], 'fence', ARGV[1])
end
return { 1, ARGV[1] }
