"""The doors of Anubis: thin rooms that parse a request, call the application, and render.

Belongs here: the command line and the HTTP service. Does not belong here: any decision
about runs; that is the application's.
"""
