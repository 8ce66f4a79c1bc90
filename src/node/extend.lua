-- Extends a lease on this node (P7). Never shortens, never touches another owner's key.
-- lift.lua stands before this.
--
-- KEYS[1]  the lock's key     KEYS[2]  its fencing counter, if that is to be raised
-- ARGV[1]  owner token        ARGV[2]  TTL in milliseconds    ARGV[3]  '1': set an absent key again
-- ARGV[4]  hint: what the counter should be at least
-- ARGV[5]  retention          ARGV[6]  max_ttl, both in milliseconds
-- Returns  { what, seconds, microseconds }; what is
--          1 renewed, 2 set again, 0 absent and left so, -1 held by another owner;
--          the rest is this node's TIME.
--
-- The hint is a help for the next grants: a counter that takes none spoils no extension.
local time = redis.call('TIME')
local owner = redis.call('GET', KEYS[1])
local what = -1
if owner == ARGV[1] then
  -- PEXPIRE GT would do, but is not there before Redis 7.0.
  if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
  end
  what = 1
elseif not owner then
  what = 0
  if ARGV[3] == '1' then
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
    what = 2
  end
end
if KEYS[2] and what > 0 then
  pcall(lift, KEYS[2], ARGV[4], ARGV[5], ARGV[6])
end
return { what, tonumber(time[1]), tonumber(time[2]) }
