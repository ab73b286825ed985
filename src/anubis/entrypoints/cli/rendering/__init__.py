"""How things look. Pure functions: values in, text (or JSON shapes) out; nothing is fetched here.

Only ``live`` imports Rich: a table of text needs no more than columns, and importing Rich would
double the time of every command that reads.
"""
