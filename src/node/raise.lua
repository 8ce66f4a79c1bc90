-- Raises the fencing counter where the lock's key is ours (P9). lift.lua stands before this.
--
-- KEYS[1]  the lock's key    KEYS[2]  its counter
-- ARGV[1]  owner token       ARGV[2]  what the counter must be at least
-- ARGV[3]  retention         ARGV[4]  max_ttl, both in milliseconds
-- Returns  1 the counter is at least that, 0 the key is not ours, -1 beyond the clock and max_ttl
--
-- The key is looked at in the same step: once another owner has it, that owner's counter has been
-- told, and to raise it now would void the order of tokens.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return lift(KEYS[2], ARGV[2], ARGV[3], ARGV[4]) and 1 or -1
