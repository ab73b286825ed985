"""Stage: who may ask, and how often. Belongs here: tokens and rates; not roles, those are nouns."""
