"""Make the keys with which the units of a run recognise each other over ssh."""
