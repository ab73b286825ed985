"""Analysis: what the numbers of a run say.

Belongs here: statistics of series (``statistics``, pure mathematics on sequences), and later
baselines and verdicts. Does not belong here: finding the numbers (``stages.collection``).
"""
