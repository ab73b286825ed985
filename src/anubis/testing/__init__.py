"""The public test kit: for our own tests and for authors of adapters and plugins.

Belongs here: builders of domain values with sensible defaults, a clock that is moved by hand,
fakes that behave, and the contract suites (``contracts``) that every adapter of a port must pass.
Does not belong here: tests of one particular adapter. Needs pytest; product code never imports it.
"""
