ALTER TABLE jobs ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0; -- how often a training may begin again
ALTER TABLE jobs ADD COLUMN attempt INTEGER NOT NULL DEFAULT 0; -- of one that may: which it is in, in the end the best
