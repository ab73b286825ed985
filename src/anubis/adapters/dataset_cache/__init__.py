"""Where datasets are held: in a folder of this machine, or in memory for tests of stages."""
