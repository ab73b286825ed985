"""The HTTP service: its app, who may ask, how errors look, and its routes.

``app`` puts everything together; ``resources`` are the routes under ``/api/v1`` about runs,
``operations`` those about the service itself, ``legacy`` the wire of the original clients. Nothing
here decides about runs; that is the application's.
"""
