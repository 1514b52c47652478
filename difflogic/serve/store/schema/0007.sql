PRAGMA application_id = 1684434023; -- "dflg": whose file this is
ALTER TABLE jobs ADD COLUMN recorded INTEGER NOT NULL DEFAULT 0; -- version of the last change that its job.json has
UPDATE jobs SET recorded = version;
CREATE INDEX idempotency_by_job ON idempotency (job);
ALTER TABLE clock ADD COLUMN boot TEXT; -- the start of the machine since which...
ALTER TABLE clock ADD COLUMN began REAL; -- ...seconds are counted, and when that was, in seconds since 1970
