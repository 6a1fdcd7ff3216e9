"""The command line `tsuka`: what is kept of runs, looked at and worked on without pytest."""

from __future__ import annotations

import click

from pytest_tsuka import __version__
from pytest_tsuka.cli.common import Group
from pytest_tsuka.cli.grading import embed, history, judge, rank, rescore
from pytest_tsuka.cli.reference import reference


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="tsuka")
def main() -> None:
    """Measure what language models can really do.

    Exit status: 0 done, 1 done but something failed or could not be graded, 2 wrong use.
    """


for command in (reference, rescore, rank, history, judge, embed):
    main.add_command(command)
