-- Gives a table its own columns for fenced and for optimistic updates; {table} is its name, quoted.
-- Both begin at 0, which every token and every first reader accepts. Take the one you need.
ALTER TABLE {table}
    -- The highest fencing token that wrote this row.
    ADD COLUMN IF NOT EXISTS fence bigint NOT NULL DEFAULT 0,
    -- How often this row was updated.
    ADD COLUMN IF NOT EXISTS version bigint NOT NULL DEFAULT 0;
