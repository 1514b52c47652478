// Control block of a model, 8 words: keys, counters and flags of a train step. Defined in difflogic/engine/control.py

const CONTROL_WORDS = 8u;
const DATA_KEY = 0u;
const TRAIN_KEY = 2u;
const STEP = 4u;
const EPOCH = 5u;
const NONFINITE = 6u;
const SKIPPED = 7u;
