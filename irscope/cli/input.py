"""What every command that reads a dump shares: its options, and loading with the errors of the contract."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import click

from irscope.formats import FORMATS
from irscope.formats.detect import called
from irscope.graph import Module, Reading
from irscope.source import Severity, UserError

MODULES_TOLD = 4
"""Of a text of several modules so many are named."""

F = TypeVar("F", bound=Callable[..., Any])

from_option = click.option(
    "--from", "from_", type=click.Choice(list(FORMATS)), help="Read the input as this format, whatever it looks like.",
)


def binding_options(command: F) -> F:
    """``--shape NAME=8,3,224,224`` and ``--dtype NAME=f32``, for what a text leaves open. They arrive as dicts ``shapes``, ``dtypes``."""
    shape = click.option("--shape", "shapes", multiple=True, metavar="NAME=8,3,224", callback=_shapes,
                         help="Bind the shape of an input that the text leaves open.")
    dtype = click.option("--dtype", "dtypes", multiple=True, metavar="NAME=f32", callback=_dtypes,
                         help="Bind the dtype of an input that the text leaves open.")
    return shape(dtype(command))


def load(path: str, from_: str | None = None) -> Reading:
    """Read one input. A text that is no dump raises UserError; faults inside a dump are in the Reading."""
    from irscope import api

    return api.load(path, format=from_) if path == "-" or "\n" not in path else _no_path(path)


def bind(reading: Reading, shapes: dict[str, tuple[int, ...]], dtypes: dict[str, str]) -> Reading:
    """The reading with what :func:`binding_options` gave for the inputs of its modules. Raises UserError as ``bind_types`` does."""
    if not shapes and not dtypes:
        return reading
    from irscope.expand.bind import bind_types

    return replace(reading, modules=[bind_types(module, shapes, dtypes) for module in reading.modules if module.entry])


def load_ok(path: str, from_: str | None = None) -> Reading:
    """Read one input that must be whole: the reader's errors are told in full and end the command with status 2."""
    reading = load(path, from_)
    require_ok(reading)
    return reading


def require_ok(reading: Reading) -> None:
    """Raise UserError with every error in a Reading that its format's own parser would refuse."""
    if reading.ok and reading.modules:
        return
    errors = [finding for finding in reading.findings if finding.severity is Severity.ERROR]
    name = called(reading.source.name)
    if not errors:
        raise UserError(f"{name}: there is no module in it")
    raise UserError(f"{name}: {len(errors)} {'error' if len(errors) == 1 else 'errors'} in the text", findings=errors)


def first_module(reading: Reading) -> Module:
    """The first module of a reading; of the others, which a command for one module leaves aside, a note tells the lines."""
    if len(reading.modules) > 1:
        told = [f"{module.name} (line {_line(reading, module)})" for module in reading.modules[:MODULES_TOLD]]
        others = ", ".join(told[1:]) + (", ..." if len(reading.modules) > MODULES_TOLD else "")
        holds = f"{called(reading.source.name)} holds {len(reading.modules)} modules"
        click.echo(f"note: {holds}; the first, {told[0]}, is taken, and not {others}", err=True)
    return reading.module()


def _line(reading: Reading, module: Module) -> int:
    """The line at which the first graph of a module begins."""
    return reading.source.place(max(0, min((graph.loc for graph in module.graphs.values()), default=0))).line


def once_stdin(paths: tuple[str, ...]) -> tuple[str, ...]:
    """The paths as given; raises UserError when standard input is asked for twice, because it can be read once."""
    if paths.count("-") > 1:
        raise UserError("standard input (-) can be given once", "write one of the inputs into a file")
    return paths


def _no_path(path: str) -> Reading:
    raise UserError(f"{path.splitlines()[0][:60]!r}... is no path", "give a text by standard input: irscope COMMAND - < FILE")


def _shapes(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        try:
            dims = tuple(int(d) for d in text.strip("[]() ").split(",") if d.strip())
        except ValueError:
            dims = (-1,)
        if not name or not equals or any(d < 0 for d in dims):
            raise click.BadParameter(f"{pair!r} is not NAME=DIM,DIM,... with sizes from 0 (x=8,3,224,224; x= for a scalar)", ctx, param)
        shapes[name] = dims
    return shapes


def _dtypes(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    from irscope.graph import DTYPES
    from irscope.source import did_you_mean

    dtypes: dict[str, str] = {}
    for pair in given:
        name, equals, dtype = pair.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{pair!r} is not NAME=DTYPE, such as x=f32", ctx, param)
        if dtype not in DTYPES:
            hint = did_you_mean(dtype, DTYPES) or f"known are {', '.join(DTYPES)}"
            raise click.BadParameter(f"there is no dtype {dtype!r}; {hint}", ctx, param)
        dtypes[name] = dtype
    return dtypes
