-- Deletes the lock's key where it is still ours (P6), and tells those who wait for it.
-- lift.lua stands before this.
--
-- KEYS[1]  the lock's key, which is also the channel of its release notes
-- KEYS[2]  its fencing counter, if that is to be raised
-- ARGV[1]  owner token
-- ARGV[2]  hint: what the counter should be at least
-- ARGV[3]  retention    ARGV[4]  max_ttl, both in milliseconds
-- Returns  { deleted, listeners }: 1 deleted, 0 nothing of ours was there; so many listen for notes.
--
-- The delete comes first: a node out of memory refuses what may grow, and lets deletes pass. The
-- hint is taken and the note goes out whether or not something was deleted, and a node that
-- refuses them has still released.
local deleted = 0
if redis.call('GET', KEYS[1]) == ARGV[1] then
  deleted = redis.call('DEL', KEYS[1])
end
if KEYS[2] then
  pcall(lift, KEYS[2], ARGV[2], ARGV[3], ARGV[4])
end
local heard = redis.pcall('PUBSUB', 'NUMSUB', KEYS[1])
local listeners = not heard.err and heard[2] or 0
redis.pcall('PUBLISH', KEYS[1], '1 freed ' .. listeners)
return { deleted, listeners }
