"""The flow, one folder per stage: descriptor, submission, planning, execution, collection,
analysis, presentation. No stage imports another; what they share is in ``domain`` and ``ports``,
and ``runtime`` calls them in order.
"""
