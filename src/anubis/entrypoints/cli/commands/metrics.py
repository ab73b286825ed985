"""``anubis metrics``: the numbers of a run, as a table or sample by sample."""

from __future__ import annotations

from collections.abc import Sequence

import click

from anubis.bootstrap.application import Application
from anubis.domain.run import RunId
from anubis.entrypoints.cli import naming, options, session, terminal
from anubis.entrypoints.cli.rendering import measurements
from anubis.stages.presentation import samples, shapes


@click.command("metrics")
@options.run_argument
@click.option("--csv", "as_csv", is_flag=True, help="Print every sample as CSV.")
@click.option("--series", "names", multiple=True, metavar="NAME", help="Only this metric.")
@options.as_json
@click.pass_obj
def metrics_command(
    opener: session.Opener | None, run: str, as_csv: bool, names: Sequence[str], as_json: bool
) -> None:
    """Show the metrics of a run, or print every sample.

    The table has the statistics of each metric and its course over time. Metrics of the
    benchmark come first, what the machine used after them.
    """
    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other")

    async def work(application: Application) -> None:
        run_id = await application.store.resolve(run)
        if as_csv:
            await _print_samples(application, run_id, names)
        else:
            await _print_table(application, run_id, names, as_json=as_json)

    session.read(opener, work)


async def _print_table(
    application: Application, run_id: RunId, names: Sequence[str], *, as_json: bool
) -> None:
    everything = await application.store.summaries(run_id)
    summaries = [one for one in everything if not names or one.key.name in names]
    naming.must_be_known("metric", names, {one.key.name for one in everything})
    if as_json:
        shape = {"run": run_id, "metrics": [shapes.metric_shape(one) for one in summaries]}
        terminal.echo(shapes.line(shape))
    elif not summaries:
        terminal.echo("no metrics so far\n")
    else:
        trends = {one.key: (await application.series.read(run_id, one.key))[1] for one in summaries}
        width = terminal.width()
        terminal.echo(measurements.metrics_table(summaries, trends, indent="", width=width))


async def _print_samples(application: Application, run_id: RunId, names: Sequence[str]) -> None:
    keys = await application.series.keys(run_id)
    units = {one.key: one.units for one in await application.store.summaries(run_id)}
    sampled = {key.name for key in keys}
    naming.must_be_known("metric", names, sampled | {key.name for key in units})
    terminal.echo(samples.header())
    for key in keys:
        if not names or key.name in names:
            column = await application.series.read(run_id, key)
            for page in samples.pages(key, units.get(key, ""), column):
                terminal.echo(page)
    for name in sorted(set(names) - sampled):
        terminal.say(f"{name} is one number, without samples: 'anubis metrics' shows it")
