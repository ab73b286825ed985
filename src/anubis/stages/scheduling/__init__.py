"""Scheduling: when a schedule fires, and what becomes of each firing. See ``README.md``."""
