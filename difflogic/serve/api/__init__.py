"""Serve jobs over HTTP: requests, events and authentication."""
