"""Presentation: what people are shown. Only reads."""
