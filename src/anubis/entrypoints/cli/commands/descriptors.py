"""``anubis init`` and ``anubis schema``: help with writing descriptors."""

from __future__ import annotations

import json
from pathlib import Path

import click

from anubis.entrypoints.cli import files, terminal
from anubis.entrypoints.cli.rendering import text
from anubis.stages.descriptor import schema, template


@click.command("init")
@click.argument(
    "file", default="descriptor.toml", metavar="[FILE]", type=click.Path(path_type=Path)
)
@click.option("--force", is_flag=True, help="Overwrite the file if it exists.")
def init_command(file: Path, force: bool) -> None:
    """Write a commented descriptor to start from.

    FILE is descriptor.toml unless you name another; an existing file is left alone.
    """
    content = template.template(_benchmark(file)).encode()
    files.write_new(file, content, force=force, remedy="--force overwrites it")
    name = text.printable(str(file))
    terminal.echo(f"wrote {name}; now: anubis run {name}\n")


def _benchmark(file: Path) -> str:
    """The name of the benchmark: the file's own, or its folder's for a plain descriptor.toml."""
    return file.stem if file.stem != "descriptor" else file.absolute().parent.name


@click.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of descriptors, for editors."""
    terminal.echo(json.dumps(schema.json_schema(), indent=2, ensure_ascii=False) + "\n")
