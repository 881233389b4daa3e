"""``--limit-time`` and ``--limit-memory``, which every command has: the budget for one file (``source/budget.py``)."""
from __future__ import annotations

from functools import wraps

import click

from irscope.cli.number_range import NumberRange

SECONDS = 600.0
"""Processor time for one file unless the user says otherwise: a million instructions are read and linted in a tenth of it."""


def _size(ctx: click.Context, param: click.Parameter, given: str | None) -> int | None:
    """The bytes of a size that is written ``512``, ``300kB`` or ``1.5GiB``; None where none is given."""
    from irscope.source import UserError
    from irscope.source.sizes import parse_size

    try:
        return parse_size(given) if given is not None else None
    except UserError as error:
        raise click.BadParameter(f"{error.message}; {error.help}", ctx, param) from None


def limited(command: click.Command) -> click.Command:
    """The command with the two options, which bound its work."""
    act = command.callback
    if act is None or any(param.name == "limit_time" for param in command.params):
        return command
    command.params += [
        click.Option(["--limit-time"], type=NumberRange(0), default=SECONDS, show_default=True, metavar="SECONDS",
                     help="Processor time that one file may take; 0: any."),
        click.Option(["--limit-memory"], callback=_size, metavar="SIZE",
                     help="Memory that one file may take, such as 2GiB; 0: any (default: what the machine has)."),
    ]

    @wraps(act)
    def bounded(*args: object, limit_time: float, limit_memory: int | None, **given: object) -> object:
        from irscope.source.budget import Limits
        from irscope.source.memory import machine_memory
        from irscope.source.watchdog import end_process, watched

        limits = Limits(limit_time or None, machine_memory() if limit_memory is None else limit_memory or None)
        with watched(limits, end_process):
            return act(*args, **given)
    command.callback = bounded
    return command
