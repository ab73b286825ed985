"""From a plan to the Kubernetes objects of a run: pure functions, whose result can be printed.

What belongs here knows the words of Kubernetes and asks no cluster anything. ``workloads`` is the
entrance; ``site`` is what it must be told.
"""
