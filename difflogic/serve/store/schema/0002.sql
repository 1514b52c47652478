-- What is asked of the queue is answered by its index alone, in pages of many jobs: a row takes a page by itself. SQLite
-- reads rows all the same where an index lacks a column of its own condition.
DROP INDEX queue;
CREATE INDEX queue ON jobs (priority DESC, number, id, owner, kind, engine, device, parent, not_before, waits_for, status)
    WHERE status = 'queued';
-- Follow-ups and sweeps have workers of their own, which look for them many times a second among thousands of trainings.
DROP INDEX follow_ups_by_turn;
CREATE INDEX other_kinds ON jobs (priority DESC, number, owner, kind, engine, not_before, status)
    WHERE status = 'queued' AND kind != 'train';
-- How many jobs of each status an owner has is counted with every submission.
CREATE INDEX jobs_by_status ON jobs (owner, status, parent) WHERE parent IS NULL;

-- Samples may be longer than all else of a row. The last column's pages are read by nobody who does not ask for it.
ALTER TABLE jobs ADD COLUMN data TEXT; -- base64
UPDATE jobs SET data = json_extract(asked, '$.options.data'), asked = json_remove(asked, '$.options.data')
    WHERE CASE WHEN json_valid(asked) THEN json_type(asked, '$.options.data') END IS NOT NULL;
