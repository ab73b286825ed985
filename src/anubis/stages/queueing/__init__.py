"""Queueing: which of the waiting runs start now, and why the others do not."""
