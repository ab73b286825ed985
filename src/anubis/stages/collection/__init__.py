"""Collection: what an engine observes becomes searchable logs and metrics.

Belongs here: cutting output into lines, finding samples in them, reading ``emit()`` lines and
resource readings, and running statistics. Does not belong here: where logs and series are kept
(``adapters``), and what the numbers mean (``stages.analysis``).
"""
