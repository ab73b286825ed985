"""``anubis show-descriptor``: the bytes a run was made from."""

from __future__ import annotations

from pathlib import Path

import click

from anubis.bootstrap.application import Application
from anubis.entrypoints.cli import files, options, session, terminal
from anubis.entrypoints.cli.rendering import text
from anubis.stages.presentation import shapes


@click.command("show-descriptor")
@options.run_argument
@click.option("--write", type=click.Path(path_type=Path), help="Write it to this new file instead.")
@options.as_json
@click.pass_obj
def show_descriptor_command(
    opener: session.Opener | None, run: str, write: Path | None, as_json: bool
) -> None:
    """Print the exact descriptor of a run."""

    async def work(application: Application) -> None:
        run_id = await application.store.resolve(run)
        document = await application.store.document(run_id)
        if write is not None:
            files.write_new(write, document.content, remedy="choose another name")
            terminal.echo(f"{text.printable(str(write))}\n")
        elif as_json:
            terminal.echo(shapes.line(shapes.document_shape(run_id, document)))
        else:
            terminal.write(document.content)

    session.read(opener, work)
