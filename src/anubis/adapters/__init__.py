"""The technologies: one folder per port, one file or folder per technology.

No adapter imports a stage, and no stage an adapter: only ``bootstrap`` knows both.
"""
