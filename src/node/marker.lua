-- Reads, and on first use writes, the marker of a node's data (P10).
--
-- KEYS[1]  <prefix>since
-- Returns  { marker, now }: both are this node's TIME, in milliseconds, as text.
--
-- The write is always tried: a read-only replica must say READONLY here, whatever it holds.
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('SET', KEYS[1], now, 'NX')
return { redis.call('GET', KEYS[1]), now }
