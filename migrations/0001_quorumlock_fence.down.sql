-- Takes back 0001_quorumlock_fence.up.sql. Afterwards nothing knows which tokens were seen: first
-- stop everything that writes under a lock.
DROP TABLE IF EXISTS quorumlock_fence;
