"""Turn a descriptor into a plan: which programs run, with what. See ``planning``."""
