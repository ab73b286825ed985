"""What keeps the stages going: tasks with names and owners, leases, deadlines, shutdown.

Belongs here: the loop that claims runs and carries them through the stages, and the background
process around it. Does not belong here: the technologies (``adapters``) or their choice
(``bootstrap``).
"""
