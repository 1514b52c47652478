-- Whose turn it is: owners of equal priority take turns, in trainings and in follow-ups each for themselves.
CREATE TABLE turns (
    owner TEXT NOT NULL,
    trains INTEGER NOT NULL, -- 1: of trainings, 0: of follow-ups
    turn INTEGER NOT NULL, -- counted up with every claim: who has the smallest waits longest
    PRIMARY KEY (owner, trains)
);
