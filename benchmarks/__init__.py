"""Numbers that are kept: measured with `difflogic bench` and the rivals, shown in the README."""
