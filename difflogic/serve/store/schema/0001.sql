-- Times are ISO 8601 in UTC where people read them, seconds since 1970 where clocks compare them.
CREATE TABLE jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT, -- the order of submission
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'queued',
    wanted TEXT, -- what someone asked of a running job: cancel, pause, requeue
    priority INTEGER NOT NULL DEFAULT 0,
    created TEXT NOT NULL,
    started TEXT,
    ended TEXT,
    attempts INTEGER NOT NULL DEFAULT 0, -- leases that were lost to a crash or a hang
    reason TEXT,
    config TEXT, -- JSON
    engine TEXT NOT NULL DEFAULT 'auto',
    population INTEGER NOT NULL DEFAULT 1,
    stop_when_solved INTEGER NOT NULL DEFAULT 0,
    source TEXT,
    options TEXT NOT NULL DEFAULT '{}', -- JSON
    result TEXT, -- JSON: what a follow-up found, in short
    device TEXT,
    epoch INTEGER NOT NULL DEFAULT 0,
    epochs INTEGER NOT NULL DEFAULT 0,
    soft_loss REAL,
    hard_loss INTEGER,
    solved INTEGER NOT NULL DEFAULT 0,
    active_gates INTEGER,
    phase TEXT,
    epochs_per_s REAL,
    version INTEGER NOT NULL,
    saved_epoch INTEGER NOT NULL DEFAULT 0, -- of the newest checkpoint
    tries INTEGER NOT NULL DEFAULT 0, -- leases lost since a checkpoint was last ahead of tried_epoch
    tried_epoch INTEGER NOT NULL DEFAULT 0,
    not_before REAL NOT NULL DEFAULT 0, -- back-off of a queued job
    worker TEXT, -- who holds the lease
    lease INTEGER NOT NULL DEFAULT 0, -- grows with every claim and loss: a write with an older number is refused
    lease_until REAL,
    watched_until REAL NOT NULL DEFAULT 0 -- state frames are made until then
);
CREATE INDEX jobs_by_turn ON jobs (status, priority DESC, number);
CREATE INDEX jobs_by_owner ON jobs (owner, number);
CREATE INDEX jobs_by_version ON jobs (version);

CREATE TABLE clock (version INTEGER NOT NULL); -- one row: the version of the newest change
INSERT INTO clock VALUES (0);

CREATE TABLE deletions (version INTEGER PRIMARY KEY, id TEXT NOT NULL, owner TEXT NOT NULL);

CREATE TABLE workers (
    name TEXT PRIMARY KEY,
    device TEXT NOT NULL,
    description TEXT NOT NULL,
    pid INTEGER NOT NULL,
    host TEXT NOT NULL,
    started TEXT NOT NULL,
    seen REAL NOT NULL,
    job TEXT,
    memory INTEGER, -- bytes of the process
    epochs_per_s REAL
);

CREATE TABLE sessions (hash TEXT PRIMARY KEY, owner TEXT NOT NULL, expires REAL NOT NULL);

CREATE TABLE idempotency (
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    request TEXT NOT NULL, -- hash of the spec
    job TEXT NOT NULL,
    created REAL NOT NULL,
    PRIMARY KEY (owner, key)
);
