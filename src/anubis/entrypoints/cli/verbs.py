"""The table of contents: every verb, where it lives, and the line that ``--help`` shows.

Plain tuples and no imports, because ``anubis --help`` reads this before anything else is loaded.
A test holds each line against the command's own help.
"""

from __future__ import annotations

SECTIONS = (
    (
        "Run a benchmark",
        (
            ("run", "running", "Run a benchmark, show it live and print its results."),
            ("submit", "running", "Hand in a benchmark and return at once with its id."),
            ("watch", "watching", "Follow a run until it ends."),
            ("cancel", "stopping", "Ask runs to stop."),
            ("purge", "stopping", "Stop runs if need be, and forget all about them."),
            ("schedule", "schedules", "List, show, pause, resume, run or remove schedules."),
        ),
    ),
    (
        "Look at runs",
        (
            ("status", "status", "Show where a run stands and what happened to it."),
            ("list", "listing", "List runs, newest first."),
            ("logs", "logs", "Print the output of a run, byte for byte."),
            ("metrics", "metrics", "Show the metrics of a run, or print every sample."),
            ("results", "results", "Show the outcome, the metrics and the end of the output."),
            ("history", "listing", "List your submissions, oldest first."),
            ("show-descriptor", "show_descriptor", "Print the exact descriptor of a run."),
        ),
    ),
    (
        "Write descriptors",
        (
            ("init", "descriptors", "Write a commented descriptor to start from."),
            ("validate", "validating", "Check descriptors and explain every problem."),
            ("plan", "planning", "Show what a run would be made of, without running it."),
            ("manifest", "manifests", "Print the Kubernetes objects that a run would get."),
            ("export", "manifests", "Print a CronJob that has a service run a descriptor."),
            ("schema", "descriptors", "Print the JSON Schema of descriptors, for editors."),
        ),
    ),
    (
        "Use a service",
        (
            ("register", "registering", "Have all commands ask a service from now on."),
            ("unregister", "registering", "Forget a service, the current one unless named."),
            ("ping", "registering", "Ask the service whether it is well, and as whom it sees you."),
        ),
    ),
    (
        "Serve a team",
        (
            ("serve", "serving", "Serve this home to a team over HTTP."),
            ("token", "tokens", "Make, list and revoke API tokens."),
        ),
    ),
    (
        "Look after the machine",
        (
            ("dataset", "datasets", "List, add, verify or evict the datasets of the cache."),
            ("doctor", "doctor", "Check this machine and say what to mend."),
            ("version", "version", "Show the version."),
        ),
    ),
)
"""Sections of ``(title, verbs)``; a verb is ``(name, module in commands, what it does)``."""

HIDDEN = (
    ("runtime", "runtime", "Serve the runs of this home in the background."),
    ("endpoint", "registering", "Show which service is registered."),
    (
        "client-id",
        "registering",
        "Show or set the id under which the original client knows its submissions.",
    ),
)
"""Verbs that our own programs use, and what some of the original client's flags become."""
