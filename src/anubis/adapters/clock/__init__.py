"""Adapters of the clock port."""
