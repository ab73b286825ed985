"""Execution: from what an engine observed to how the run ended."""
