"""What every access store must do.

Subclass ``AccessStoreContract`` and give it a fixture ``store`` with a fresh, empty store.
"""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import timedelta

import pytest

from anubis.domain import errors
from anubis.domain.access import Role, TokenId
from anubis.ports.access_store import AccessStore
from anubis.testing import builders
from anubis.testing.builders import HOUR, a_digest
from anubis.testing.clock import NOON

SECOND = timedelta(seconds=1)


class TokenContract:
    """Tokens are found by the digest of their secret, for as long as anybody may ask."""

    async def test_a_token_is_found_by_its_digest_exactly_as_it_was_added(
        self, store: AccessStore
    ) -> None:
        """Every field survives."""
        token = dataclasses.replace(
            builders.a_token(role=Role.ADMIN),
            note="for the nightly job",
            expires_at=NOON + HOUR,
            revoked_at=NOON,
            last_used_at=NOON,
        )
        await store.add_token(token, a_digest())
        await store.add_token(builders.a_token(1), a_digest(1))
        assert await store.token_by_digest(a_digest()) == token
        assert await store.token_by_digest(a_digest(9)) is None
        assert await store.token_by_digest("\udcff") is None

    async def test_adding_it_again_changes_nothing(self, store: AccessStore) -> None:
        """A client that heard no answer may try again."""
        await store.add_token(builders.a_token(), a_digest())
        await store.revoke(builders.a_token().id, now=NOON)
        await store.add_token(builders.a_token(), a_digest())
        [token] = await store.tokens()
        assert token.revoked_at == NOON

    async def test_neither_an_id_nor_a_secret_is_used_twice(self, store: AccessStore) -> None:
        """And the refusal does not tell a digest."""
        await store.add_token(builders.a_token(0), a_digest(0))
        for number, digest in ((0, a_digest(1)), (1, a_digest(0))):
            with pytest.raises(errors.NotPossible) as refused:
                await store.add_token(builders.a_token(number), digest)
            assert digest not in str(refused.value)
        assert await store.tokens() == (builders.a_token(0),)

    async def test_tokens_are_listed_newest_first(self, store: AccessStore) -> None:
        """Useless ones included."""
        for number in (1, 0, 2):
            await store.add_token(builders.a_token(number), a_digest(number))
        await store.revoke(builders.a_token(2).id, now=NOON)
        assert [token.id for token in await store.tokens()] == ["token2", "token1", "token0"]

    async def test_the_first_revocation_counts(self, store: AccessStore) -> None:
        """Revoking again changes nothing."""
        token = builders.a_token()
        await store.add_token(token, a_digest())
        revoked = await store.revoke(token.id, now=NOON)
        assert revoked == dataclasses.replace(token, revoked_at=NOON)
        assert await store.revoke(token.id, now=NOON + HOUR) == revoked
        assert await store.token_by_digest(a_digest()) == revoked
        with pytest.raises(errors.TokenNotFound):
            await store.revoke(TokenId("nobody"), now=NOON)

    async def test_the_last_use_is_kept_to_the_minute_and_never_goes_back(
        self, store: AccessStore
    ) -> None:
        """Unknown tokens are passed over."""
        token = builders.a_token()
        await store.add_token(token, a_digest())
        uses = ((59 * SECOND, NOON), (HOUR + SECOND, NOON + HOUR), (2 * SECOND, NOON + HOUR))
        for later, expected in uses:
            await store.touch(token.id, now=NOON + later)
            [used] = await store.tokens()
            assert used == dataclasses.replace(token, last_used_at=expected)
        await store.touch(TokenId("nobody"), now=NOON)
        assert len(await store.tokens()) == 1


class AuditContract:
    """What people did is written down in order."""

    async def test_the_record_is_read_from_new_to_old_in_parts(self, store: AccessStore) -> None:
        """Numbers are given by the store, and grow."""
        for number in range(5):
            await store.note(builders.an_audit_entry(f"run.{number}"))
        newest = await store.audit(limit=2)
        assert [entry.action for entry in newest] == ["run.4", "run.3"]
        older = await store.audit(before=newest[1].number, limit=9)
        assert [entry.action for entry in older] == ["run.2", "run.1", "run.0"]
        numbers = [entry.number for entry in (*newest, *older)]
        assert numbers == sorted(set(numbers), reverse=True)
        assert await store.audit(before=older[-1].number) == ()
        assert await store.audit(limit=0) == ()
        assert len(await store.audit(before=10**30)) == 5

    async def test_an_entry_is_given_back_as_it_was_noted(self, store: AccessStore) -> None:
        """Refusals as well; text that no encoding can hold does not keep it out."""
        entry = dataclasses.replace(
            builders.an_audit_entry("token.revoke"),
            token=TokenId("token0"),
            allowed=False,
            detail="viewers may not",
        )
        await store.note(entry)
        [noted] = await store.audit()
        assert noted == dataclasses.replace(entry, number=noted.number)
        await store.note(dataclasses.replace(entry, target="\udcff"))
        assert len(await store.audit()) == 2

    async def test_entries_before_a_moment_are_forgotten_and_numbers_go_on(
        self, store: AccessStore
    ) -> None:
        """One of that very moment stays; a number is never given twice."""
        for hour in (2, 0, 1, 0):  # the clock may have been set back
            entry = builders.an_audit_entry(f"run.{hour}")
            await store.note(dataclasses.replace(entry, at=NOON + hour * HOUR))
        last = (await store.audit())[0].number
        assert await store.forget_before(NOON + HOUR) == 2
        assert [entry.action for entry in await store.audit()] == ["run.1", "run.2"]
        assert await store.forget_before(NOON + HOUR) == 0
        assert await store.forget_before(NOON + 9 * HOUR) == 2
        assert await store.audit() == ()
        await store.note(builders.an_audit_entry("run.new"))
        [new] = await store.audit()
        assert new.number > last

    async def test_many_may_write_at_once(self, store: AccessStore) -> None:
        """Nothing is lost."""
        entries = [builders.an_audit_entry(f"run.{number}") for number in range(20)]
        await asyncio.gather(*(store.note(entry) for entry in entries))
        noted = {entry.action for entry in await store.audit()}
        assert noted == {entry.action for entry in entries}


class AccessStoreContract(TokenContract, AuditContract):
    """All of it. Inherit from this one."""
