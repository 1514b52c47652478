ALTER TABLE workers ADD COLUMN claim TEXT; -- what it calls its last claim: one that comes again gets the same job
