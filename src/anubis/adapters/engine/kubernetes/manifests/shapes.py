"""The shape of what Kubernetes is told.

Its objects have thousands of fields, which the official schemas describe; the tests hold ours
against them, and against a real API server. A type for the few that we write would only repeat it.
"""

from __future__ import annotations

Manifest = dict[str, object]
"""An object, or a part of one, as JSON has it."""
