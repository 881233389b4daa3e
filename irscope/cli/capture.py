"""``irscope capture``: runs a program with the compiler's dumps switched on, and shows what it compiled."""
from __future__ import annotations

from dataclasses import dataclass

import click

from irscope.api.capturing import capture
from irscope.api.options import CaptureOptions, option
from irscope.cli.errors import FINDINGS, OK
from irscope.cli.options import options
from irscope.cli.output import opened, paint_for
from irscope.cli.reporting import print_report
from irscope.cli.terminal import TERMINAL


@dataclass(frozen=True, kw_only=True)
class CaptureOutput:
    """How the findings are reported."""

    form: str = option("concise", "How to report the findings.", "--format", choices=("full", "concise"))


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("program", nargs=-1, required=True, metavar="-- PROGRAM [ARGUMENT]...")
@options(request=CaptureOptions, output=CaptureOutput)
def command(program: tuple[str, ...], request: CaptureOptions, output: CaptureOutput) -> int:
    """Run a program with the dumps of XLA and torch.compile switched on, and show what it compiled.

    What the program prints goes to standard error. Then follow the modules by cost, what each stage of the compiler changed in the
    costliest, graph breaks and recompilations of torch, and the findings in the costliest five.

    \b
    Examples:
      irscope capture -- python train.py --steps 1
      irscope capture --keep dumps --functions '.*train_step.*' --passes -- python train.py
    """
    with capture(program, request, watch=TERMINAL) as captured:
        with opened("-", ()) as stream:
            captured.shown.write(stream, paint_for(stream), stream.isatty())
            stream.write("\n")
        print_report(captured.linted.report, output.form, None)
    return FINDINGS if captured.failed else OK
