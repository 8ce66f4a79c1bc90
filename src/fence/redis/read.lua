-- Reads what write.lua wrote, value and token of the same moment.
--
-- KEYS[1]  the hash
-- Returns  { what, fence, value }; what is
--          1 found, and the value nil where none was written yet; 0 the key is not there;
--          -1 it holds something else, and the second element says what.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then
  return { 0, '', false }
elseif kind ~= 'hash' then
  return { -1, 'a ' .. kind, false }
end
local found = redis.call('HMGET', KEYS[1], 'fence', 'value')
if not found[1] then
  return { -1, 'a hash without a fencing token', false }
end
return { 1, found[1], found[2] }
