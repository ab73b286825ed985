"""The processes that guard runs: one zygote and one keeper per engine, one shim per run.

The zygote is a bare interpreter that has imported everything a shim needs and forks one shim per
run, which costs a third of starting an interpreter. A shim owns one run: it starts the program,
keeps its output, samples its resources, enforces its limits, and writes how it ended. The keeper
holds the pipes of all runs open, so that no kill can empty them. All they
share with the engine is the run's directory (``files``, ``journal``), so that either side may die
at any instruction and the other still knows what happened.

Here belongs only what those processes need. Nothing outside the standard library, and nothing of
Anubis above this package, is imported: every module here is paid for by every run.
"""
