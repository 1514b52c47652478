-- Checksums of rows, by `records.checksum`: SQLite notices a damaged page, and not a cell that became another. A later
-- script that changes cells sets `checksum` to NULL: then they get another when the store is opened.
ALTER TABLE jobs ADD COLUMN checksum TEXT;
ALTER TABLE sessions ADD COLUMN checksum TEXT;
