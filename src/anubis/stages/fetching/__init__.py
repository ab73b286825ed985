"""Fetching: have all data of a run on this machine before it starts."""
