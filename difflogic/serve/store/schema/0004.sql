-- Configurations in today's form, so that every reader of a job finds today's names; `current_config` is in Python.
UPDATE jobs SET config = current_config(config) WHERE config IS NOT NULL;
