"""Who asks: tokens, Basic for the original client, rates, and what stays open."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from anubis.domain.access import Role

from .conftest import World

ME = "/api/v1/me"


async def test_on_loopback_the_asker_is_who_they_say_and_an_admin(world: World) -> None:
    async with world.asking(X_Anubis_User="ada") as client:
        answer = (await client.get(ME)).json()
    assert answer == {"user": "ada", "role": "admin", "token": None, "requires_tokens": False}


@pytest.mark.parametrize("name", ["", "a" * 65, "ada smith", "<script>"])
async def test_a_name_that_nobody_can_have_is_not_believed(world: World, name: str) -> None:
    async with world.asking(X_Anubis_User=name) as client:
        assert (await client.get(ME)).json()["user"] == "local"


async def test_a_good_token_says_who_asks(guarded: World) -> None:
    issued = await guarded.token("ada", Role.VIEWER)
    async with guarded.asking(issued.secret) as client:
        answer = (await client.get(ME)).json()
    assert answer["user"] == "ada"
    assert answer["role"] == "viewer"
    assert answer["token"] == issued.token.id


async def test_a_claimed_name_means_nothing_where_tokens_are_in_force(guarded: World) -> None:
    issued = await guarded.token("ada")
    async with guarded.asking(issued.secret, X_Anubis_User="root") as client:
        assert (await client.get(ME)).json()["user"] == "ada"


async def test_the_token_may_be_the_password_of_basic(guarded: World) -> None:
    """The original client is registered as user:TOKEN@host."""
    issued = await guarded.token("ada")
    async with guarded.asking() as client:
        answer = await client.get(ME, auth=("whoever", issued.secret))
    assert answer.json()["user"] == "ada"


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Bearer anb_wrong",
        "Basic !!!",
        "Basic " + base64.b64encode(b"ada").decode(),
        "Digest x",
    ],
)
async def test_without_a_good_token_nothing_is_answered(guarded: World, header: str) -> None:
    async with guarded.asking(Authorization=header) as client:
        answer = await client.get(ME)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:anubis:not-authenticated"


async def test_a_path_that_does_not_exist_tells_strangers_nothing(guarded: World) -> None:
    async with guarded.asking() as client:
        assert (await client.get("/api/v1/nothing")).status_code == 401


async def test_an_expired_token_opens_nothing(guarded: World) -> None:
    issued = await guarded.token("ada", days=1)
    guarded.clock.advance(timedelta(days=1))
    async with guarded.asking(issued.secret) as client:
        assert (await client.get(ME)).status_code == 401


async def test_revoking_takes_effect_with_the_next_request(guarded: World) -> None:
    issued = await guarded.token("ada")
    async with guarded.asking(issued.secret) as client:
        assert (await client.get(ME)).status_code == 200
        await guarded.access.revoke(issued.token.id, now=guarded.clock.now())
        assert (await client.get(ME)).status_code == 401


@pytest.mark.parametrize("path", ["/api/v1/health", "/api/v1/ready"])
async def test_those_who_watch_over_services_need_no_token(guarded: World, path: str) -> None:
    async with guarded.asking() as client:
        assert (await client.get(path)).status_code in (200, 503)


async def test_a_token_that_asks_too_often_is_told_when_to_come_back(tmp_path: Path) -> None:
    world = World(tmp_path / "home", requires_tokens=True, rate_burst=2)
    ada, bob = await world.token("ada"), await world.token("bob")
    async with world.asking(ada.secret) as client:
        answers = [await client.get(ME) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert answers[-1].headers["retry-after"] == "1"
        async with world.asking(bob.secret) as other:
            assert (await other.get(ME)).status_code == 200
        world.clock.advance(timedelta(seconds=1))
        assert (await client.get(ME)).status_code == 200


async def test_wrong_tokens_are_slowed_down_and_good_ones_are_not(guarded: World) -> None:
    issued = await guarded.token("ada")
    async with guarded.asking("anb_wrong") as client:
        codes = {(await client.get(ME)).status_code for _ in range(30)}
    assert codes == {401, 429}
    async with guarded.asking(issued.secret) as client:
        assert (await client.get(ME)).status_code == 200


async def test_when_a_token_was_used_is_kept_to_the_minute(guarded: World) -> None:
    issued = await guarded.token("ada")
    async with guarded.asking(issued.secret) as client:
        await client.get(ME)
        first = (await guarded.access.tokens())[0].last_used_at
        guarded.clock.advance(timedelta(seconds=30))
        await client.get(ME)
        assert (await guarded.access.tokens())[0].last_used_at == first
        guarded.clock.advance(timedelta(minutes=1))
        await client.get(ME)
    assert (await guarded.access.tokens())[0].last_used_at != first


async def test_a_strangers_body_is_not_read(guarded: World) -> None:
    read = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(100):
            read += 1
            yield b"x" * 1000

    async with guarded.asking() as client:
        answer = await client.post("/api/v1/tokens", content=body())
    assert answer.status_code == 401
    assert read <= 1
