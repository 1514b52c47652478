"""What is done with a circuit once it is trained: each action is one function, for commands, workers and Python."""
