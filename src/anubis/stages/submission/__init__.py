"""Submission: a valid descriptor and its plan become a durable run."""
