"""Run units as pods of a Kubernetes cluster."""
