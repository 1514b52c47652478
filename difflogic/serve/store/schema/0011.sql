ALTER TABLE jobs ADD COLUMN webhook TEXT; -- an address that hears of the job's end
CREATE TABLE alerts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    url TEXT, -- NULL: the operator's
    job TEXT NOT NULL,
    owner TEXT NOT NULL,
    body TEXT NOT NULL, -- JSON: the job as it was when it ended
    due REAL NOT NULL DEFAULT 0,
    tries INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX alerts_by_due ON alerts (due);
