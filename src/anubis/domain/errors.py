"""The error tree. A class says what to do next; the message says what happened.

AnubisError
├── UserError             the request is wrong: show it, without a traceback   (exit 2)
│   ├── DescriptorInvalid the descriptor has problems, all of them listed
│   ├── RunNotFound       no run has this id or prefix
│   ├── RunAmbiguous      several runs have this prefix
│   ├── ScheduleNotFound  no schedule has this id, prefix or name
│   ├── TokenNotFound     no token has this id
│   ├── DatasetNotFound   no dataset of the cache has this key
│   ├── DatasetInvalid    what is said about data is not so: not there, or another checksum
│   ├── NotPossible       the request makes no sense for the run's present state
│   ├── NotAuthenticated  who asks did not show a good token
│   ├── NotAllowed        whoever asks may not do this
│   └── TooMuch           a limit of the installation is reached: fewer, or later
├── TemporaryError        trying again later may work                          (exit 3)
│   ├── StoreUnavailable  the store did not answer
│   ├── EngineUnavailable the engine did not answer
│   ├── SourceUnavailable the source of a dataset did not answer
│   └── ServiceUnavailable the service that was asked did not answer
└── PermanentError        trying again will not help                           (exit 3)
    ├── LeaseLost         another worker has the run now: drop it, touch nothing
    ├── IllegalMove       the table of moves forbids this step: a defect of ours
    ├── StoreUnusable     the store is damaged or written by a newer version
    ├── StartFailed       the engine could not start the program, and says why
    ├── ImageUnavailable  an image cannot be had; the message has the registry's words
    ├── StorageFull       there is no room on the disk for what must be kept
    └── UnexpectedAnswer  the service answered something that we do not understand
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from anubis.domain.problem import Problem


class AnubisError(Exception):
    """Any failure that Anubis explains in words."""

    exit_code: ClassVar[int] = 3


class UserError(AnubisError):
    """The request is wrong; the message tells how to mend it."""

    exit_code = 2


class DescriptorInvalid(UserError):
    """The descriptor has problems. All of them are in ``problems``."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in problems))


class RunNotFound(UserError):
    """No run has this id or prefix."""


class RunAmbiguous(UserError):
    """Several runs have this prefix."""


class NotPossible(UserError):
    """The request makes no sense for the run's present state."""


class ScheduleNotFound(UserError):
    """No schedule has this id, prefix or name."""


class ScheduleAmbiguous(UserError):
    """Several schedules have this prefix or name."""


class TokenNotFound(UserError):
    """No token has this id."""


class DatasetNotFound(UserError):
    """No dataset of the cache has this key."""


class DatasetInvalid(UserError):
    """What is said about data is not so: it is not there, may not be read, or is not the content
    that its checksum names. Trying again will not help.
    """


class NotAuthenticated(UserError):
    """Who asks did not show a good token."""


class NotAllowed(UserError):
    """Whoever asks may not do this."""


class TooMuch(UserError):
    """A limit of the installation is reached; ``retry_after`` says when to try again."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        self.retry_after = retry_after  #: seconds; None: only when something else has ended
        super().__init__(message)


class TemporaryError(AnubisError):
    """Trying again later may work."""


class StoreUnavailable(TemporaryError):
    """The run store did not answer."""


class EngineUnavailable(TemporaryError):
    """The engine did not answer."""


class SourceUnavailable(TemporaryError):
    """The source of a dataset did not answer."""


class ServiceUnavailable(TemporaryError):
    """The service that was asked did not answer; the message names it and says what to do."""


class PermanentError(AnubisError):
    """Trying again will not help."""


class LeaseLost(PermanentError):
    """Another worker has the run now."""


class IllegalMove(PermanentError):
    """The table of moves forbids this step."""


class StoreUnusable(PermanentError):
    """The store is damaged, or was written by a newer version of Anubis."""


class StartFailed(PermanentError):
    """The engine could not start the program; the message says why."""


class ImageUnavailable(PermanentError):
    """An image cannot be had; the message names it and has the registry's words."""


class StorageFull(PermanentError):
    """There is no room on the disk for what must be kept; the message names where, and how much."""


class UnexpectedAnswer(PermanentError):
    """The service answered something that we do not understand: often another program's port, or
    another version of Anubis.
    """
