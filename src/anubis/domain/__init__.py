"""The nouns of Anubis and their rules.

Belongs here: values, states, legal moves, the error tree. Does not belong here: files, sockets,
clocks, random numbers, client libraries. Everything is frozen; a change is a new value.
"""
