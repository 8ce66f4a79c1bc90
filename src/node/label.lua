-- Writes a label for people beside a lock, where the lock is this owner's, or takes it away.
--
-- KEYS[1]  the lock's key
-- KEYS[2]  the label's key
-- ARGV[1]  owner token
-- ARGV[2]  text; empty takes the label of this owner away, whoever holds the lock
-- ARGV[3]  for how long the label stays, ms
-- ARGV[4]  for how long the lock stays from now on, ms; empty leaves that alone
-- Returns  1 done, 0 the lock is not this owner's, or has no label of it.
--
-- The label says whose it is, so that one which outlives its lock is never taken for another's.
if ARGV[2] == '' then
  local label = redis.pcall('GET', KEYS[2])
  if type(label) ~= 'string' or string.sub(label, 1, 41) ~= ARGV[1] .. ' ' then
    return 0
  end
  return redis.call('DEL', KEYS[2])
end
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
if ARGV[4] ~= '' then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
redis.call('SET', KEYS[2], ARGV[1] .. ' ' .. ARGV[2], 'PX', ARGV[3])
return 1
