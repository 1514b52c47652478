ALTER TABLE jobs ADD COLUMN tags TEXT NOT NULL DEFAULT '[]'; -- JSON: words by which its owner finds it again
CREATE INDEX tagged ON jobs (owner, tags) WHERE tags != '[]';
