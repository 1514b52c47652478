ALTER TABLE jobs ADD COLUMN score REAL; -- of agents: the best one's mean return
