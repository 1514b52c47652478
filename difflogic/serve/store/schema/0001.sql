-- Times are ISO 8601 in UTC where people read them, seconds where clocks compare them.
PRAGMA application_id = 1684434023; -- "dflg": whose file this is

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
    over_at REAL, -- what the clock had counted when it ended
    lost_tries INTEGER NOT NULL DEFAULT 0, -- leases that were lost to a crash or a hang
    reason TEXT,
    asked TEXT NOT NULL, -- JSON: what was asked for, as far as nothing is looked for by it
    engine TEXT NOT NULL DEFAULT 'auto',
    source TEXT,
    parent TEXT, -- of a trial: the sweep that it belongs to
    result TEXT, -- JSON: what a follow-up found, in short
    device TEXT,
    attempt INTEGER NOT NULL DEFAULT 0, -- of one that may begin again: which it is in, in the end the best
    progress INTEGER NOT NULL DEFAULT 0, -- epochs, environment steps of agents, trials of a sweep...
    goal INTEGER NOT NULL DEFAULT 0, -- ...and all there are to do
    soft_loss REAL,
    hard_loss INTEGER,
    compared INTEGER, -- values that an evaluation compares: hard_loss counts the wrong ones
    score REAL, -- of agents: the best one's mean return
    solved INTEGER NOT NULL DEFAULT 0,
    active_gates INTEGER,
    phase TEXT,
    progress_per_s REAL,
    trained_s REAL NOT NULL DEFAULT 0, -- seconds of work, over all tries
    version INTEGER NOT NULL,
    recorded INTEGER NOT NULL DEFAULT 0, -- version of the last change that its job.json has
    saved_progress INTEGER NOT NULL DEFAULT 0, -- of the newest checkpoint
    vain_tries INTEGER NOT NULL DEFAULT 0, -- leases lost since a checkpoint was last ahead of tried_progress
    tried_progress INTEGER NOT NULL DEFAULT 0,
    not_before REAL NOT NULL DEFAULT 0, -- back-off of a queued job
    waits_for TEXT, -- one sentence: why no worker takes it
    worker TEXT, -- who holds the lease
    lease INTEGER NOT NULL DEFAULT 0, -- grows with every claim and loss: a write with an older number is refused
    lease_until REAL,
    watched_until REAL NOT NULL DEFAULT 0, -- state frames are made until then
    tags TEXT NOT NULL DEFAULT '[]' -- JSON: words by which its owner finds it again
);
CREATE INDEX jobs_by_turn ON jobs (status, priority DESC, number);
CREATE INDEX jobs_by_owner ON jobs (owner, number);
CREATE INDEX jobs_by_version ON jobs (version);
CREATE INDEX tagged ON jobs (owner, tags) WHERE tags != '[]';
CREATE INDEX trials ON jobs (parent, status) WHERE parent IS NOT NULL;
-- Follow-ups have a worker of their own, which looks for them often.
CREATE INDEX follow_ups_by_turn ON jobs (priority DESC, number) WHERE status = 'queued' AND kind NOT IN ('train', 'sweep');
-- Where each job stands is asked for often: of the rows, which have kilobytes of configuration, nothing is read for it.
CREATE INDEX queue ON jobs (priority DESC, number, id, owner, kind, engine, device) WHERE status = 'queued';

CREATE TABLE clock (
    version INTEGER NOT NULL, -- of the newest change
    boot TEXT, -- the start of the machine since which...
    began REAL, -- ...seconds are counted, and when that was, in seconds since 1970
    made TEXT NOT NULL, -- when the store began
    counted REAL NOT NULL DEFAULT 0, -- seconds for which it was served
    counted_at REAL NOT NULL DEFAULT 0, -- when these were counted last, by the steady clock...
    wall REAL NOT NULL DEFAULT 0 -- ...and by the system's
); -- one row
INSERT INTO clock (version, made) VALUES (0, strftime('%Y-%m-%dT%H:%M:%S+00:00', 'now'));

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
    progress_per_s REAL,
    engines TEXT NOT NULL DEFAULT '' -- what trainings may have asked for, with commas between
);

-- Whose turn it is: owners of equal priority take turns, in trainings and in follow-ups each for themselves.
CREATE TABLE turns (
    owner TEXT NOT NULL,
    trains INTEGER NOT NULL, -- 1: of trainings, 0: of follow-ups
    turn INTEGER NOT NULL, -- counted up with every claim: who has the smallest waits longest
    PRIMARY KEY (owner, trains)
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
CREATE INDEX idempotency_by_job ON idempotency (job);
