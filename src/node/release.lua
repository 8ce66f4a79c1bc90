-- Deletes the lock's key where it is still ours (P6), and tells those who wait for it.
--
-- KEYS[1]  the lock's key, which is also the channel of its release notes
-- ARGV[1]  owner token
-- Returns  1 deleted, 0 nothing of ours was there.
--
-- The delete comes first: a node out of memory refuses what may grow, and lets deletes pass. The
-- note goes out whether or not something was deleted, and a node that refuses it has still
-- released.
local deleted = 0
if redis.call('GET', KEYS[1]) == ARGV[1] then
  deleted = redis.call('DEL', KEYS[1])
end
redis.pcall('PUBLISH', KEYS[1], '1')
return deleted
