"""Adapters of the event bus port: within one process, and between processes of one machine."""
