"""What ``anubis doctor`` looks at. Each check gives findings and changes nothing.

Belongs here: questions about this machine and this home whose answer a person can act on. Paths
are arguments, so that tests can ask about a machine made of files.
"""
