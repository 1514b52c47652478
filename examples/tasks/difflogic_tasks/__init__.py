"""Five tasks for difflogic: read `adder` first, which is the shortest."""
