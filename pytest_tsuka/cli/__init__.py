"""The command line `tsuka`: what is kept of runs, looked at and worked on without pytest."""

from __future__ import annotations

import click

from pytest_tsuka import __version__
from pytest_tsuka.cli.common import Group
from pytest_tsuka.cli.grading import history, rank, rescore
from pytest_tsuka.cli.judging import embed, judge
from pytest_tsuka.cli.models import doctor, models, pull
from pytest_tsuka.cli.profiles import show, tools
from pytest_tsuka.cli.reference import reference
from pytest_tsuka.cli.results import diff, merge, report
from pytest_tsuka.cli.suite import check, init, new, schema


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="tsuka")
def main() -> None:
    """Measure what language models can really do.

    Exit status: 0 done, 1 done but something failed or could not be graded, 2 wrong use.
    """


for command in (
    *(models, doctor, pull),
    *(init, new, check, schema),
    *(show, tools, report, diff, merge),
    *(reference, rescore, rank, history, judge, embed),
):
    main.add_command(command)
