"""Where datasets come from: one file per technology. Sources only read, and never hold anything."""
