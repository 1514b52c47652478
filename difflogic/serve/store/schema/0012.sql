-- Links that open one job to whoever has them, to be read.
CREATE TABLE shares (
    id TEXT PRIMARY KEY, -- the part of a token by which it is found
    hash TEXT NOT NULL, -- of the whole token
    job TEXT NOT NULL,
    label TEXT NOT NULL,
    created TEXT NOT NULL,
    expires REAL -- NULL: never
);
CREATE INDEX shares_by_job ON shares (job);
