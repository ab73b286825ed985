"""Fetching: have all data of a run here before anything of it starts."""
