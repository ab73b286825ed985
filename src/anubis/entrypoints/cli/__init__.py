"""The command line. ``verbs`` is its table of contents.

``overview`` answers ``--help`` and ``version`` before anything else is imported; ``edge`` runs all
other commands and turns errors into exit codes; ``commands`` fetch,
``rendering`` says how it looks.
"""
