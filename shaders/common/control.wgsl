// The words that steer a train step, 8 per model. Ground truth: difflogic/engine/control.py

const CONTROL_WORDS = 8u;
const DATA_KEY = 0u;
const TRAIN_KEY = 2u;
const STEP = 4u;
const EPOCH = 5u;
const NONFINITE = 6u;
const SKIPPED = 7u;
