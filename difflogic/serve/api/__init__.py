"""The server: HTTP, events, and who may ask."""
