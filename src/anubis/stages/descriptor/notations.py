"""The kinds with a small language of their own: durations, sizes, cron, CPU sets and others."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from typing import Final

from anubis.domain import size
from anubis.domain.descriptor import GPUS, SINGLE_RUN
from anubis.domain.schedule import CRON_FORMS
from anubis.stages.descriptor import wording
from anubis.stages.descriptor.kinds import Scalar, Unacceptable, as_integer, as_text
from anubis.stages.descriptor.reporting import Place

MAX_DURATION: Final = timedelta(days=3650)
"""Ten years; more is a slip of the keyboard."""

MAX_CPU: Final = 8191
"""Linux can be built for at most 8,192 CPUs."""

MAX_SCHEDULE_LENGTH: Final = 200

_ANY_TIME: Final = datetime(2020, 1, 1)  # noqa: DTZ001 - cron is checked, not computed

_SECONDS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(ms|s|m|h|d)\s*")
_CPUS: Final = re.compile(r"(\d{1,5})(?:\s*-\s*(\d{1,5}))?")
_LABEL: Final = r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
_CHECKSUM: Final = r"^([^:]+:[a-fA-F0-9]+|[a-fA-F0-9]{32}|)$"
_PROCESSES: Final = re.compile(r"\s*\+?(\d{1,6})\s*")


def _seconds(value: object) -> float:
    if isinstance(value, str):
        return _seconds_of_text(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unacceptable
    # A whole number may be too large to become a float.
    return float(value) if abs(value) < MAX_DURATION.total_seconds() * 2 else math.inf


def _seconds_of_text(text: str) -> float:
    total, at = 0.0, 0
    while found := _DURATION.match(text, at):
        total += float(found[1]) * _SECONDS[found[2]]
        at = found.end()
    if at == 0 or at < len(text):
        raise Unacceptable(hint="units are ms, s, m, h and d; without quotes it means seconds")
    return total


def _duration(minimum: timedelta, expected: str) -> Scalar:
    def convert(value: object, _place: Place) -> timedelta:
        seconds = _seconds(value)
        if math.isnan(seconds) or seconds > MAX_DURATION.total_seconds():
            raise Unacceptable(hint=f"at most {MAX_DURATION.days} days")
        duration = timedelta(seconds=seconds) if seconds >= 0 else -timedelta.resolution
        if duration < minimum:
            raise Unacceptable
        return duration

    text = {"type": "string", "pattern": r"^\s*(\d+(\.\d+)?\s*(ms|s|m|h|d)\s*)+$"}
    number = {"type": "number", "minimum": minimum.total_seconds()}
    return Scalar(expected=expected, convert=convert, schema={"anyOf": [number, text]})


DURATION: Final = _duration(
    timedelta(milliseconds=1), 'seconds above zero, or text such as "90s", "15m", "2h" or "1d"'
)
GRACE: Final = _duration(timedelta(0), 'seconds, or text such as "10s" or "2m"')


def _size(value: object, _place: Place) -> int:
    if isinstance(value, str):
        found = size.read(value)
        if found is None:
            raise Unacceptable(hint=size.UNITS)
    else:
        found = as_integer(value)
    if found >= 2**63:
        raise Unacceptable(hint="at most 8 million TiB")
    if found <= 0:
        raise Unacceptable
    return found


SIZE: Final = Scalar(
    expected='bytes above zero, or text such as "500MB" or "10GiB"',
    convert=_size,
    schema={
        "anyOf": [
            {"type": "integer", "minimum": 1},
            {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*([KMGTkmgt]?[Ii]?[Bb])?\s*$"},
        ]
    },
)


def _cpus(value: object, _place: Place) -> tuple[int, ...]:
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",")] if value.strip() else []
        numbers = {number for part in parts for number in _cpu_range(part)}
    elif isinstance(value, list):
        numbers = {as_integer(item) for item in value}
    else:
        raise Unacceptable
    if any(not 0 <= number <= MAX_CPU for number in numbers):
        raise Unacceptable(expected=f"CPU numbers from 0 to {MAX_CPU}")
    return tuple(sorted(numbers))


def _cpu_range(part: str) -> range:
    found = _CPUS.fullmatch(part)
    if not found:
        raise Unacceptable
    first, last = int(found[1]), int(found[2] or found[1])
    if last < first:
        raise Unacceptable(hint=f"did you mean '{last}-{first}'?")
    return range(first, min(last, MAX_CPU + 1) + 1)


CPUS: Final = Scalar(
    expected='CPU numbers as a list such as [0, 1], or as text such as "0-3,6"',
    convert=_cpus,
    schema={
        "anyOf": [
            {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": MAX_CPU}},
            {"type": "string", "pattern": r"^[\d\s,-]*$"},
        ]
    },
)


def _cpu_count(value: object, _place: Place) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unacceptable
    if value > MAX_CPU + 1:
        raise Unacceptable(hint=f"at most {MAX_CPU + 1}")
    if not value > 0:  # neither is a number that is none
        raise Unacceptable
    return float(value)


CPU_COUNT: Final = Scalar(
    expected="a number of CPUs above zero, such as 4 or 0.5",
    convert=_cpu_count,
    schema={"type": "number", "exclusiveMinimum": 0, "maximum": MAX_CPU + 1},
)


def _schedule(value: object, place: Place) -> str:
    text = as_text(value).strip()
    if text == SINGLE_RUN:
        return text
    if text.startswith("@"):
        return _macro(text)
    fields = text.split()
    if len(fields) != 5 or len(text) > MAX_SCHEDULE_LENGTH:
        raise Unacceptable(hint=wording.did_you_mean(text, [SINGLE_RUN, *CRON_FORMS]))
    if "?" in fields:
        place.deprecate(wording.described(value), "'*' instead of '?'", "same meaning")
        fields = ["*" if field == "?" else field for field in fields]
    _check_cron(" ".join(fields))
    return " ".join(fields)


def _check_cron(schedule: str) -> None:
    # Most descriptors run once; they should not pay for the import (a tenth of a start-up).
    from cronsim import CronSim, CronSimError

    try:
        CronSim(schedule, _ANY_TIME)
    except (CronSimError, ValueError) as error:
        raise Unacceptable(hint=str(error).lower()) from None


def _macro(text: str) -> str:
    if text.lower() not in CRON_FORMS:
        raise Unacceptable(hint=wording.did_you_mean(text, list(CRON_FORMS)))
    return CRON_FORMS[text.lower()]


SCHEDULE: Final = Scalar(
    expected='"single_run", five cron fields such as "0 3 * * *", or a name such as "@daily"',
    convert=_schedule,
    schema={
        "anyOf": [
            {"enum": [SINGLE_RUN, *CRON_FORMS]},
            {"type": "string", "pattern": r"^\s*(single_run|@[A-Za-z]+|\S+(\s+\S+){4})\s*$"},
        ]
    },
)


def _label(value: object, _place: Place) -> str:
    text = as_text(value)
    if len(text) > 63 or not re.fullmatch(_LABEL[1:-1], text):
        raise Unacceptable
    return text


LABEL_NAME: Final = Scalar(
    expected="1 to 63 letters, digits, '-', '_' or '.', with a letter or digit at both ends",
    convert=_label,
    schema={"type": "string", "maxLength": 63, "pattern": _LABEL},
)
LABEL_VALUE: Final = Scalar(
    expected="nothing, or " + LABEL_NAME.expected,
    convert=lambda value, place: "" if value == "" else _label(value, place),
    schema={"anyOf": [{"const": ""}, LABEL_NAME.schema]},
)


def _variable_name(value: object, _place: Place) -> str:
    text = as_text(value)
    if not text or "=" in text:
        raise Unacceptable
    return text


VARIABLE_NAME: Final = Scalar(
    expected="the name of an environment variable, which is not empty and has no '='",
    convert=_variable_name,
    schema={"type": "string", "pattern": "^[^=]+$"},
)


ULIMITS: Final = (
    *("core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice", "nofile"),
    *("nproc", "rss", "rtprio", "rttime", "sigpending", "stack"),
)
"""The limits that containers know, as Docker spells them."""


def _ulimit_name(value: object, _place: Place) -> str:
    text = as_text(value)
    if text not in ULIMITS:
        raise Unacceptable(hint=wording.did_you_mean(text, ULIMITS))
    return text


ULIMIT_NAME: Final = Scalar(
    expected=f"one of {wording.listed(ULIMITS)}",
    convert=_ulimit_name,
    schema={"enum": list(ULIMITS)},
)


def _checksum(value: object, place: Place) -> str:
    text = as_text(value).strip()
    if not re.fullmatch(_CHECKSUM[1:-1], text):
        # The original took any text; refusing it now would break descriptors that ran.
        place.deprecate(
            wording.described(value),
            "32 hexadecimal digits, or an algorithm and digits such as sha256:…",
            "no content will ever have this checksum",
        )
    return text


CHECKSUM: Final = Scalar(
    expected="32 hexadecimal digits, or an algorithm and digits such as sha256:…",
    convert=_checksum,
    schema={"anyOf": [{"pattern": _CHECKSUM}, {"deprecated": True}], "type": "string"},
)


def _processes(value: object, _place: Place) -> int | str:
    if value == GPUS:
        return GPUS
    number = _PROCESSES.fullmatch(value) if isinstance(value, str) else None
    count = int(number[1]) if number else as_integer(value)
    if count < 1:
        raise Unacceptable
    return count


PROCESSES: Final = Scalar(
    expected='a whole number of at least 1, or "gpus"',
    convert=_processes,
    schema={
        "anyOf": [
            {"type": "integer", "minimum": 1},
            {"type": "string", "pattern": r"^(gpus|\s*\+?0*[1-9]\d*\s*)$"},
        ]
    },
)


def _archive(value: object, _place: Place) -> str:
    text = as_text(value)
    if not text.endswith(".tar"):
        raise Unacceptable
    return text


ARCHIVE: Final = Scalar(
    expected="the name of a .tar file",
    convert=_archive,
    schema={"type": "string", "pattern": r"\.tar$"},
)
