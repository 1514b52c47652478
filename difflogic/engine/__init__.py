"""The contract between those who train and the engines: what an engine gets and gives."""
