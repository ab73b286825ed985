"""A click group that imports a command's module when that command is called, not before."""

from __future__ import annotations

import difflib
import importlib
import traceback
from typing import Any

import click

import anubis
from anubis.entrypoints.cli import overview, terminal, verbs

PIPE_CLOSED = 141
"""128 + SIGPIPE: what a shell reports for any program whose reader went away."""


class LazyGroup(click.Group):
    """Finds commands through the table in ``verbs``.

    The attribute of verb ``show-descriptor`` is ``show_descriptor_command`` in its module.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The public verbs, in the order of the table."""
        return [name for _, section in verbs.SECTIONS for name, _, _ in section]

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        cmd_name: str,
    ) -> click.Command | None:
        """Import the module of one verb."""
        module = _MODULES.get(cmd_name)
        if module is None:
            return None
        home = importlib.import_module(f"anubis.entrypoints.cli.commands.{module}")
        command = getattr(home, f"{cmd_name.replace('-', '_')}_command")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first word, or say which one may be meant."""
        word = args[0]
        if word not in _MODULES and not word.startswith("-"):
            ctx.fail(f"there is no command {word!r}{_hint(word, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def format_help(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        """The same page as the quick path prints."""
        formatter.write(overview.help_page())

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command. A reader that went away (``| head``) is no error worth a word."""
        try:
            result = super().invoke(ctx)
            terminal.flush()
        except BrokenPipeError:
            terminal.forget()
            raise click.exceptions.Exit(PIPE_CLOSED) from None
        except OSError as error:
            if _was_printing(error):
                raise terminal.lost(error) from error
            raise
        return result


def _was_printing(error: OSError) -> bool:
    """Whether click failed to print a page of its own, which does not pass through ``terminal``."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return frames[-1].f_code is click.echo.__code__


def _hint(word: str, verbs: list[str]) -> str:
    if word.endswith(".toml"):
        return f"; did you mean 'anubis run {word}'?"
    close = difflib.get_close_matches(word, verbs, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


_MODULES = {
    name: module
    for verb in (*(section for _, section in verbs.SECTIONS), verbs.HIDDEN)
    for name, module, _ in verb
}


@click.group(cls=LazyGroup, name="anubis", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(anubis.__version__, "-v", "--version", message="anubis %(version)s")
def group() -> None:
    """Measure machine-learning systems: one TOML file in, numbers you can trust out."""
