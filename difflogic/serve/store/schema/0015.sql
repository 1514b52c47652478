-- Sweeps are done by the workers of devices, as trainings are.
DROP INDEX follow_ups_by_turn;
CREATE INDEX follow_ups_by_turn ON jobs (priority DESC, number) WHERE status = 'queued' AND kind NOT IN ('train', 'sweep');
