"""Make keys for units of a run that talk to each other over ssh."""
