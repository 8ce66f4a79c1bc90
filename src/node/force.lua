-- Deletes the lock's key whoever holds it, for an operator, and tells those who wait for it.
--
-- KEYS[1]  the lock's key, which is also the channel of its release notes
-- Returns  { 1, owner, PTTL } deleted, { 0 } nothing was there, { -1 } something that is not a
--          lock, which is left alone.
--
-- The delete comes first, as in release.lua. The fencing counter stays as it is, so that the
-- next token is larger than that of the holder who still believes in his lock.
local owner = redis.pcall('GET', KEYS[1])
local answer = { 0 }
if type(owner) == 'table' then
  if owner.err and not string.find(owner.err, 'WRONGTYPE', 1, true) then
    return owner
  end
  return { -1 }
elseif owner then
  if #owner ~= 40 or string.find(owner, '[^0-9a-f]') then
    return { -1 }
  end
  answer = { 1, owner, redis.call('PTTL', KEYS[1]) }
  redis.call('DEL', KEYS[1])
end
redis.pcall('PUBLISH', KEYS[1], '1 freed')
return answer
