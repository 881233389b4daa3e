"""``irscope compile-and-run``: compile a graph to native code, run it, check and time it."""
from __future__ import annotations

from dataclasses import dataclass

import click

from irscope import api
from irscope.api.options import RunOptions, option
from irscope.cli.errors import FINDINGS, OK
from irscope.cli.options import options
from irscope.cli.terminal import TERMINAL
from irscope.source import UserError
from irscope.source.data_text import strict_json

STAGES = ("loops", "llvm", "asm", "obj", "so")
BINARY = ("obj", "so")


@dataclass(frozen=True, kw_only=True)
class RunOutput:
    """Where and how the result is written."""

    emit: str | None = option(None, "Write this stage instead of running.", choices=STAGES)
    output: str = option("-", "Where --emit writes.", "-o", "--output", metavar="FILE", shown=False)
    form: str = option("text", "How to report the result.", "--format", choices=("text", "json"))


@click.command()
@click.argument("file")
@options(request=RunOptions, output=RunOutput)
def command(file: str, request: RunOptions, output: RunOutput) -> int:
    """Compile a graph to native code, run it, check and time it.

    Inputs that are not given are drawn from --seed.

    \b
    Examples:
      irscope compile-and-run model.hlo --check
      irscope compile-and-run model.hlo --inputs x.npz --weights w.npz --save-outputs y.npz
      irscope compile-and-run model.hlo --bench --threads 1
      irscope compile-and-run model.hlo --profile
      irscope compile-and-run model.hlo --emit loops | less
    """
    if output.emit is not None:
        return _emit(file, request, output, output.emit)
    result = api.run(file, request, watch=TERMINAL)
    if output.form == "json":
        print(strict_json(result.as_json()))
    else:
        from irscope.cli.run_report import print_tables

        print_tables(request, result)
    return OK if result.ok else FINDINGS


def _emit(file: str, request: RunOptions, output: RunOutput, stage: str) -> int:
    """Write a stage of the compiler."""
    if stage in BINARY:
        if output.output == "-":
            raise UserError(f"--emit {stage} writes binary code", "-o FILE says where to")
        api.write_library(file, stage, output.output, request, watch=TERMINAL)
        return OK
    from irscope.cli.output import opened

    with opened(output.output, (file, *request.files), verbatim=True) as stream:
        stream.write(str(api.emit(file, stage, request, watch=TERMINAL)))
    return OK
