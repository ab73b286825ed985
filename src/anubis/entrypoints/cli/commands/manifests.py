"""``anubis manifest`` and ``anubis export``: what Kubernetes gets, for people and for kubectl."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

import click

from anubis.bootstrap import planning
from anubis.bootstrap.application import Application, Submission
from anubis.entrypoints.cli import documents, options, session, terminal
from anubis.entrypoints.cli.rendering import manifests, text


@click.command("manifest")
@options.descriptor_argument
@options.script
@click.option("--namespace", metavar="NAME", default="", help="As if runs were in this namespace.")
@options.as_json
@click.pass_obj
def manifest_command(
    opener: session.Opener | None, file: str, script: str | None, namespace: str, as_json: bool
) -> None:
    """Print the Kubernetes objects that a run would get.

    FILE is a descriptor, '-' for standard input, or a run. The objects are exactly those that the
    engine applies, in that order, but for what only a run has: its id is zeros, and keys, code and
    files of this machine are words in angle brackets. Nothing is applied.
    """

    async def work(application: Application) -> None:
        found = await documents.find(application, file)
        document = await planning.with_code(found.document, script)
        submission = Submission(
            document=document,
            submitter=session.person(),
            environment=os.environ,
            wants_it_now=True,
        )
        made = await application.manifest(submission, namespace)
        for note in (*made.notes, *map(str, made.warnings)):
            terminal.say(text.printable(note))
        _print(made.objects, as_json=as_json)

    session.call(opener, work)


@click.command("export")
@options.descriptor_argument
@options.script
@click.option("--cronjob", is_flag=True, required=True, help="As a CronJob of Kubernetes.")
@click.option("--service", metavar="URL", default="", help="The service, as pods reach it.")
@click.option(
    "--token-secret",
    metavar="NAME",
    default="",
    help="A Secret whose key 'token' is a token for it.",
)
@click.option("--image", metavar="NAME", default="", help="Our image, if not the usual one.")
@click.option("--namespace", metavar="NAME", default="", help="Where the objects shall be.")
@options.as_json
@click.pass_obj
def export_command(
    opener: session.Opener | None,
    file: str,
    script: str | None,
    cronjob: bool,  # noqa: ARG001 - there is only one form yet
    service: str,
    token_secret: str,
    image: str,
    namespace: str,
    as_json: bool,
) -> None:
    """Print a CronJob that has a service run a descriptor.

    FILE is a descriptor with a schedule, or '-' for standard input. Printed are a ConfigMap that
    holds it and its code, and a CronJob whose pod hands them in, waits for the run, and ends as the
    run did: 'anubis export --cronjob FILE | kubectl apply --server-side -f -'. Without --service,
    the registered service is used.
    """
    from anubis.bootstrap import exporting

    wanted = exporting.Wanted(
        service=service,
        token_secret=token_secret,
        image=image,
        namespace=namespace,
        script=script,
    )

    async def work(application: Application) -> None:
        found = await documents.find(application, file)
        parsed = application.validate(found.document)
        for warning in parsed.warnings:
            terminal.say(text.printable(str(warning)))
        made = await exporting.exported(found.document, parsed.descriptor, wanted)
        _print(made, as_json=as_json)

    session.call(opener, work)


def _print(objects: Sequence[dict[str, object]], *, as_json: bool) -> None:
    if as_json:
        whole = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        terminal.echo(f"{json.dumps(whole)}\n")
    else:
        terminal.echo(manifests.documents(objects))
