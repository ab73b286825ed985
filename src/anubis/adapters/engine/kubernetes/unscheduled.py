"""Why no node takes a pod, from the words of the scheduler.

It says ``0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match Pod's node
affinity/selector. preemption: 0/3 nodes are available: ...``. People need to know of what there is
too little and which labels they asked for; how many nodes said so changes by the minute in a
cluster that lives, and is left for the end.
"""

from __future__ import annotations

import re
from typing import Final

from anubis.adapters.engine.kubernetes import phrasing
from anubis.adapters.engine.kubernetes.viewing import Asks
from anubis.domain import size

_WHOLE: Final = re.compile(r"0/(\d{1,9}) nodes are available: ?(.*)", re.DOTALL)
_PREEMPTION: Final = re.compile(r"\.? *(?:no new claims to deallocate, *)?preemption: ", re.DOTALL)
_REASON: Final = re.compile(r"(?:^|, )(\d{1,9}) (?=\S)")
_LACK: Final = re.compile(r"Insufficient (\S+)")
_TAINT: Final = re.compile(r"untolerated taint \{(.*)\}")
_UNHELPFUL: Final = re.compile(r"(\d{1,9}) Preemption is not helpful")

_SELECTOR: Final = "node(s) didn't match Pod's node affinity/selector"
_CROWDED: Final = (
    "node(s) didn't match pod anti-affinity rules",
    "node(s) didn't satisfy existing pods anti-affinity rules",
)
_CLOSED: Final = "node(s) were unschedulable"


def told(message: str, asks: Asks) -> str:
    """Why no node takes it, in a sentence that stays the same while the reasons do."""
    if "no nodes available to schedule pods" in message:
        return "the cluster has no nodes"
    found = _WHOLE.match(message)
    if found is None:
        return phrasing.plain(message) or "the scheduler gives no reason"
    filtered, after = _split(found[2])
    reasons = _reasons(filtered)
    if not reasons:
        words = filtered.partition(". ")[0]  # a second sentence repeats the first
        return phrasing.plain(words) or "the scheduler gives no reason"
    unhelpful = _UNHELPFUL.search(after)
    never = unhelpful is not None and unhelpful[1] == found[1]
    return "; ".join(_sentences(reasons, asks, never=never))


def _split(words: str) -> tuple[str, str]:
    """What the nodes said, and what putting others off would help."""
    cut = _PREEMPTION.search(words)
    filtered = words[: cut.start()] if cut else words
    return filtered.strip().removesuffix("."), words[cut.end() :] if cut else ""


def _reasons(filtered: str) -> list[str]:
    """Each reason once, without the number of nodes that gave it."""
    marks = list(_REASON.finditer(filtered))
    if not marks or marks[0].start() != 0:
        return []
    ends = [*(mark.start() for mark in marks[1:]), len(filtered)]
    return [filtered[mark.end() : end] for mark, end in zip(marks, ends, strict=True)]


def _sentences(reasons: list[str], asks: Asks, *, never: bool) -> list[str]:
    """The most telling first: what is lacking, where one may be, who is in the way, the rest."""
    lacking = sorted(found[1] for reason in reasons if (found := _LACK.fullmatch(reason)))
    labels = ", ".join(asks.labels) or "the labels it asks for"
    chooses = _SELECTOR in reasons
    where = f"node with {labels}" if chooses else "node"
    said = [_lack(name, asks, where=where, never=never) for name in lacking]
    if "Too many pods" in reasons:
        said.append(f"no {where} has room for one more pod")
    if any(reason in _CROWDED for reason in reasons):
        said.append(
            f"every {where} that has room runs another benchmark, or a pod that must be alone"
        )
    taints = [reason for reason in reasons if "untolerated taint" in reason]
    if taints:
        said.append(f"nodes have taints that it does not tolerate{_taints(taints)}")
    if _CLOSED in reasons:
        said.append("nodes are closed for new pods (cordoned)")
    said += sorted(phrasing.plain(reason) for reason in reasons if _is_other(reason))
    if chooses and not any(where in one for one in said):
        said.append(f"{'other nodes do not have' if said else 'no node has'} {labels}")
    return said


def _lack(resource: str, asks: Asks, *, where: str, never: bool) -> str:
    wanted = _amount(resource, asks)
    if never:  # also if all others left, as the scheduler says
        return f"no {where} has {wanted}, not even an empty one"
    return f"no {where} has {wanted} free"


def _amount(resource: str, asks: Asks) -> str:
    amount = asks.amount(resource)
    if resource in ("memory", "ephemeral-storage") and amount.isdecimal():
        amount = size.spoken(int(amount[:30]))
    return f"{amount} {resource}" if amount else f"enough {resource}"


def _taints(reasons: list[str]) -> str:
    named = sorted({found[1].strip(" :") for one in reasons if (found := _TAINT.search(one))})
    return f" ({', '.join(named)})" if named else ""


def _is_other(reason: str) -> bool:
    return not (
        reason in (_SELECTOR, _CLOSED, "Too many pods", *_CROWDED)
        or "untolerated taint" in reason
        or _LACK.fullmatch(reason)
    )
