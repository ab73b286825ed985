"""The wiring. The only room that names concrete adapters; reads as a diagram."""
