"""How this installation is configured: typed values, read once by ``loading``, then passed on."""
