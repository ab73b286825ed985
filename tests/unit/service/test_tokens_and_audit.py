"""Tokens over the wire, roles, and the record of who did what."""

from __future__ import annotations

from typing import Annotated

import pytest
from fastapi import Depends, Request

from anubis.domain.access import Principal, Role
from anubis.entrypoints.api import access

from .conftest import World


async def test_an_admin_makes_a_token_whose_secret_is_shown_once(guarded: World) -> None:
    admin = await guarded.token("root", Role.ADMIN)
    async with guarded.asking(admin.secret) as client:
        made = await client.post(
            "/api/v1/tokens", json={"user": "ada", "role": "viewer", "note": "for plots", "days": 7}
        )
        listed = await client.get("/api/v1/tokens")
    assert made.status_code == 201
    secret = made.json()["secret"]
    assert secret.startswith("anb_")
    token = made.json()["token"]
    assert (token["user"], token["role"], token["note"]) == ("ada", "viewer", "for plots")
    assert token["expires_at"] == "2024-05-24T12:00:00.000000Z"
    assert [one["user"] for one in listed.json()["tokens"]] in (["ada", "root"], ["root", "ada"])
    assert secret not in listed.text
    async with guarded.asking(secret) as client:
        assert (await client.get("/api/v1/me")).json()["user"] == "ada"


async def test_a_revoked_token_is_listed_as_such(guarded: World) -> None:
    admin = await guarded.token("root", Role.ADMIN)
    ada = await guarded.token("ada")
    async with guarded.asking(admin.secret) as client:
        revoked = await client.delete(f"/api/v1/tokens/{ada.token.id}")
        missing = await client.delete("/api/v1/tokens/nothing")
    assert revoked.json()["good"] is False
    assert missing.status_code == 404
    assert missing.json()["type"] == "urn:anubis:token-not-found"


@pytest.mark.parametrize("role", [Role.VIEWER, Role.SUBMITTER])
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/api/v1/tokens"), ("DELETE", "/api/v1/tokens/x"), ("GET", "/api/v1/audit")],
)
async def test_only_admins_see_tokens_and_the_record(
    guarded: World, role: Role, method: str, path: str
) -> None:
    issued = await guarded.token("ada", role)
    async with guarded.asking(issued.secret) as client:
        answer = await client.request(method, path)
    assert answer.status_code == 403
    assert "admin" in answer.json()["detail"]
    [entry] = await guarded.access.audit()
    assert (entry.user, entry.target, entry.allowed) == ("ada", path, False)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"user": "a b"}, "user"),
        ({"user": "ada", "days": 0}, "days"),
        ({"user": "ada", "role": "king"}, "role"),
        ({"user": "ada", "note": "x" * 201}, "note"),
        ({}, "user"),
    ],
)
async def test_a_wish_that_makes_no_sense_is_explained(
    world: World, body: dict[str, object], field: str
) -> None:
    async with world.asking() as client:
        answer = await client.post("/api/v1/tokens", json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert field in answer.json()["detail"]


async def test_the_record_tells_who_did_what_without_secrets(guarded: World) -> None:
    admin = await guarded.token("root", Role.ADMIN)
    async with guarded.asking(admin.secret) as client:
        made = (await client.post("/api/v1/tokens", json={"user": "ada"})).json()
        await client.delete(f"/api/v1/tokens/{made['token']['id']}")
        record = await client.get("/api/v1/audit")
        older = await client.get("/api/v1/audit", params={"before": 2, "limit": 1})
    entries = record.json()["entries"]
    assert [one["action"] for one in entries] == ["token.revoke", "token.create"]
    assert {one["user"] for one in entries} == {"root"}
    assert {one["target"] for one in entries} == {made["token"]["id"]}
    assert made["secret"] not in record.text
    assert [one["action"] for one in older.json()["entries"]] == ["token.create"]


async def test_who_does_not_own_a_run_may_not_change_it_unless_admin(guarded: World) -> None:
    @guarded.app.post("/api/v1/things/{owner}")
    async def change(
        request: Request,
        owner: str,
        _: Annotated[Principal, Depends(access.needs(Role.SUBMITTER))],
    ) -> str:
        await access.must_own(request, owner, "thing.change", "42")
        await access.note(request, "thing.change", "42")
        return "done"

    ada = await guarded.token("ada")
    admin = await guarded.token("root", Role.ADMIN)
    viewer = await guarded.token("eve", Role.VIEWER)
    async with guarded.asking(ada.secret) as client:
        assert (await client.post("/api/v1/things/ada")).status_code == 200
        refused = await client.post("/api/v1/things/bob")
        assert refused.status_code == 403
        assert "bob" in refused.json()["detail"]
    async with guarded.asking(admin.secret) as client:
        assert (await client.post("/api/v1/things/bob")).status_code == 200
    async with guarded.asking(viewer.secret) as client:
        assert (await client.post("/api/v1/things/eve")).status_code == 403
    assert await guarded.actions_on_record() == [
        ("ada", "thing.change", True),
        ("ada", "thing.change", False),
        ("root", "thing.change", True),
        ("eve", "POST /api/v1/things/{owner}", False),
    ]
