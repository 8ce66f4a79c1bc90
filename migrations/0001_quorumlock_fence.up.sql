-- The highest fencing token that each resource has seen.
--
-- Run it once, by whatever runs your migrations; running it again changes nothing. The table
-- belongs into the database of the tables it protects, since the check must commit with the write.
-- A row is 40 to 80 bytes and stays for good: delete those of resources that are gone, and whose
-- names do not come back.
CREATE TABLE IF NOT EXISTS quorumlock_fence (
    -- The resource's name as the lock knows it: any bytes, text as UTF-8.
    resource bytea PRIMARY KEY CHECK (octet_length(resource) BETWEEN 1 AND 2000),
    highest bigint NOT NULL CHECK (highest >= 0)
);
