-- Deletes the lock's key where it is still ours (P6), and tells those who wait for it.
-- lift.lua stands before this.
--
-- KEYS[1]  the lock's key, which is also the channel of its release notes
-- KEYS[2]  its fencing counter, if that is to be raised
-- ARGV[1]  owner token
-- ARGV[2]  hint: what the counter should be at least
-- ARGV[3]  retention    ARGV[4]  max_ttl, both in milliseconds
-- Returns  1 deleted, 0 nothing of ours was there; and 2 for each connection that was told.
--          One number, since that is cheapest, and nobody listens as a rule.
--
-- The delete comes first: a node out of memory refuses what may grow, and lets deletes pass. The
-- hint is taken whether or not something was deleted. The note goes out where the key is gone, by
-- this or otherwise; where another owner has it, nothing is free, and what waiters take back there
-- would wake each other for ever. A node that refuses hint and note has still released.
local deleted = 0
local owner = redis.call('GET', KEYS[1])
if owner == ARGV[1] then
  deleted = redis.call('DEL', KEYS[1])
end
if KEYS[2] then
  pcall(lift, KEYS[2], ARGV[2], ARGV[3], ARGV[4])
end
if owner and deleted == 0 then
  return 0
end
local listeners = 0
local heard = redis.pcall('PUBLISH', KEYS[1], '1 freed')
if type(heard) == 'number' and heard > 0 then
  -- Patterns are counted above, and those who only watch have them.
  local count = redis.pcall('PUBSUB', 'NUMSUB', KEYS[1])
  listeners = count.err and heard or count[2]
  redis.pcall('PUBLISH', KEYS[1], '1 crowd ' .. listeners)
end
return deleted + 2 * listeners
