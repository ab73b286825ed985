"""Where samples are kept: ``memory`` for tests, ``directory`` for files on this machine."""
