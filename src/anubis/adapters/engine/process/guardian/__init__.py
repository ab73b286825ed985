"""The processes that guard runs: one zygote and one keeper per engine, one shim per unit.

The zygote is a bare interpreter that has imported everything a shim needs and forks one shim per
unit, which costs a third of starting an interpreter. A shim owns one unit: it starts the program,
keeps its output, samples its resources, enforces its limits, and writes how it ended. The keeper
holds the pipes of all units open, so that no kill can empty them. All they share with the engine is
the unit's directory (``files``, ``journal``), so that either side may die at any instruction and
the other still knows what happened. Most runs have one unit, and the words here are theirs: a
``run_id`` is the name of a directory, be it that of a run or that of one of its units.

Here belongs only what those processes need. Nothing outside the standard library, and nothing of
Anubis above this package, is imported: every module here is paid for by every run.
"""
