ALTER TABLE jobs ADD COLUMN until_solved INTEGER NOT NULL DEFAULT 0; -- 1: a training begins again until it is solved
ALTER TABLE jobs ADD COLUMN within TEXT; -- where that ends, solved or not: 60s, 2000 epochs
ALTER TABLE jobs ADD COLUMN trained_s REAL NOT NULL DEFAULT 0; -- seconds of work, over all tries
ALTER TABLE jobs ADD COLUMN compared INTEGER; -- values that an evaluation compares: hard_loss counts the wrong ones
