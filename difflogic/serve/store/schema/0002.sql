-- Follow-ups have a worker of their own, which looks for them often.
CREATE INDEX follow_ups_by_turn ON jobs (priority DESC, number) WHERE status = 'queued' AND kind != 'train';

ALTER TABLE workers ADD COLUMN engines TEXT NOT NULL DEFAULT ''; -- what trainings may have asked for, with commas between
ALTER TABLE jobs ADD COLUMN waits_for TEXT; -- one sentence: why no worker takes it
