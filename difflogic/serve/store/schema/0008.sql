ALTER TABLE jobs ADD COLUMN note TEXT NOT NULL DEFAULT ''; -- what its owner wrote to it
