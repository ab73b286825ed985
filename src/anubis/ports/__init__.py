"""What the stages need from the world, as written promises.

Belongs here: Protocols and the small values their methods take. A docstring states what is
atomic, in which order, which errors, and whether trying again is safe. No code runs here.
"""
