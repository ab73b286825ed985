"""The schema, as numbered changes to the one before. A package so that the files are installed.

A file is never changed after a release; a new number is added. See ``migrating``.
"""
