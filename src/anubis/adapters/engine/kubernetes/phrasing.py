"""Words of the cluster and lengths of time, so that the same situation always reads the same.

Each new message becomes an event of a run, so what changes with every attempt (ids, names of pods
that were never made, seconds) is left out. What a person must not see in a log is, too.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

MOST: Final = 1000  #: characters of foreign words in a message

_RPC: Final = re.compile(r"rpc error: code = \w+ desc = ")
_ID: Final = re.compile(
    r"\b[0-9a-f]{32,}\b"
)  # sandboxes, containers; a digest is wanted, see below
_DIGEST: Final = re.compile(r"(?<=sha256:)[0-9a-f]{64}\b")
_QUERY: Final = re.compile(r"(https?://[^\s?\"']{1,2000})\?[^\s\"']{1,20000}")
_USER: Final = re.compile(r"(https?://)[^\s/@\"']{1,2000}@")
_POD: Final = re.compile(r"\bpods? \"[^\"]{1,300}\"")
_SPACE: Final = re.compile(r"\s+")

_TRAPPINGS: Final = (
    re.compile(r'^Back-off pulling image "[^"]{0,1000}"(?:: )?'),
    re.compile(r"^(?:ErrImagePull|RegistryUnavailable|SignatureValidationFailed): "),
    re.compile(r'^Failed to pull image "[^"]{0,1000}": '),
    re.compile(r'^failed to pull and unpack image "[^"]{0,1000}": '),
    re.compile(r'^failed to resolve reference "[^"]{0,1000}": '),
)
"""What kubelet and container runtime put before the registry's words."""

_STEPS: Final = tuple(
    [timedelta(minutes=step) for step in (1, 2, 4, 8, 15, 30)]
    + [timedelta(hours=step) for step in (1, 2, 4, 8, 16)]
    + [timedelta(days=step) for step in (1, 2, 4, 8, 16)]
)


def plain(words: str) -> str:
    """Foreign words in one line, without what changes from one attempt to the next, and without
    what signs an address.
    """
    line = _SPACE.sub(" ", words[: 20 * MOST]).strip()
    line = _USER.sub(r"\1", _QUERY.sub(r"\1?...", _RPC.sub("", line)))
    digests = iter(_DIGEST.findall(line))
    line = _ID.sub("...", _DIGEST.sub("{digest}", line))
    line = re.sub(r"\{digest\}", lambda _: next(digests, "..."), line)
    line = _POD.sub("its pod", line)
    return line if len(line) <= MOST else f"{line[:MOST]}..."


def advised(words: str) -> str:
    """What a cluster says to a pod of ours, and what to do where that is not in its words."""
    return f"{words}; {more}" if (more := advice(words)) else words


def advice(words: str) -> str:
    """What to do where the cluster's words do not say it; empty if they do."""
    if "violates PodSecurity" not in words:
        return ""
    label = "pod-security.kubernetes.io/enforce=privileged"
    return f"recorders read log files of their node: label the namespace {label}"


def registry(words: str) -> str:
    """Why an image cannot be pulled, without the names of all who passed that on."""
    said = plain(words)
    for trapping in _TRAPPINGS:
        said = trapping.sub("", said)
    return said


def lasting(length: timedelta) -> str:
    """How long something lasts, in steps so coarse that it is rarely news; empty below a minute."""
    reached = [step for step in _STEPS if step <= length]
    return f" for more than {spoken(reached[-1])}" if reached else ""


def spoken(length: timedelta) -> str:
    """``90 s``, ``15 min``, ``2 h``, ``4 days``."""
    seconds = length.total_seconds()
    for span, word in ((86_400, "day"), (3_600, "h"), (60, "min")):
        if seconds >= span and seconds % span == 0:
            count = seconds / span
            return f"{count:g} {word}{'s' if word == 'day' and count > 1 else ''}"
    return f"{seconds:g} s"
