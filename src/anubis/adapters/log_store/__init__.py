"""Where the output of runs is kept: ``memory`` for tests, ``local`` for files on this machine."""
