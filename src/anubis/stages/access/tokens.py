"""Give out tokens and recognize them.

A secret is 32 random bytes. Nobody can guess one, so a plain SHA-256 of it is all that needs to be
stored: slow hashes with salt are for passwords that people choose. A token is found by its digest,
so no comparison takes longer for a secret that is nearly right.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
import secrets
from datetime import timedelta

from anubis.domain.access import Principal, Role, Token, TokenId
from anubis.domain.errors import UserError
from anubis.ports.access_store import AccessStore
from anubis.ports.clock import Clock

PREFIX = "anb_"
"""Lets people, and programs that search for leaked secrets, see what it is."""

SECRET_BYTES = 32
ID_BYTES = 5

DEFAULT_DAYS = 90
MOST_DAYS = 3650

LONGEST_NOTE = 200

TOUCH_EVERY = timedelta(minutes=1)
"""``last_used_at`` is for people who tidy up; to the minute is enough, and spares a write."""

USER = re.compile(r"[A-Za-z0-9._@+-]{1,64}")
"""What a user may be called: account names and mail addresses."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """The token somebody asks for."""

    user: str
    role: Role
    note: str = ""
    days: int = DEFAULT_DAYS


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Issued:
    """A new token. The secret is shown now or never."""

    token: Token
    secret: str = dataclasses.field(repr=False)


async def issue(wish: Wish, store: AccessStore, clock: Clock) -> Issued:
    """Make a token and store its digest. Raises UserError for a wish that makes no sense."""
    _check(wish)
    now = clock.now()
    secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    token = Token(
        id=TokenId(secrets.token_hex(ID_BYTES)),
        user=wish.user,
        role=wish.role,
        note=wish.note,
        created_at=now,
        expires_at=now + timedelta(days=wish.days),
    )
    await store.add_token(token, digest(secret))
    return Issued(token=token, secret=secret)


async def recognize(secret: str, store: AccessStore, clock: Clock) -> Principal | None:
    """Who shows this secret; None if it opens nothing, whatever the reason."""
    now = clock.now()
    token = await store.token_by_digest(digest(secret))
    if token is None or not token.is_good(now):
        return None
    if token.last_used_at is None or now - token.last_used_at >= TOUCH_EVERY:
        await store.touch(token.id, now=now)
    return Principal(user=token.user, role=token.role, token=token.id)


async def has_admin(store: AccessStore, clock: Clock) -> bool:
    """Whether any good token belongs to an admin."""
    now = clock.now()
    return any(one.role is Role.ADMIN and one.is_good(now) for one in await store.tokens())


def digest(secret: str) -> str:
    """What is stored of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _check(wish: Wish) -> None:
    if not USER.fullmatch(wish.user):
        raise UserError(
            f"user: found {wish.user!r}, expected 1 to 64 letters, digits or any of . _ @ + -"
        )
    if not 1 <= wish.days <= MOST_DAYS:
        raise UserError(f"days: found {wish.days}, expected a whole number from 1 to {MOST_DAYS}")
    if len(wish.note) > LONGEST_NOTE or not wish.note.isprintable():
        raise UserError(
            f"note: found {wish.note[:LONGEST_NOTE]!r}, "
            f"expected at most {LONGEST_NOTE} printable characters"
        )
