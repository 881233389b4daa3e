"""Options of the command line, made from the records that declare them (``irscope/api/options.py``)."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from functools import wraps
from typing import Any, get_args, get_origin, get_type_hints

import click

from irscope.api.options import Option
from irscope.cli.number_range import NumberRange

F = Callable[..., object]


def options(**records: type[Any]) -> Callable[[F], F]:
    """Give a command the options of some records; it is called with an instance of each, under the name given here.

    ``@options(request=LintOptions, output=LintOutput)`` stands above ``def command(paths, request, output)``.
    """

    def decorate(act: F) -> F:
        @wraps(act)
        def call(**given: Any) -> Any:
            made = {name: record(**{f.name: given.pop(f.name) for f in fields(record) if "option" in f.metadata})
                    for name, record in records.items()}
            return act(**given, **made)

        for record in reversed(records.values()):
            hints = get_type_hints(record)
            for each in reversed(fields(record)):
                if "option" in each.metadata:
                    _option(each, hints[each.name])(call)
        return call

    return decorate


def _option(each: Field[object], hint: object) -> Callable[[F], F]:
    """The click option of one field."""
    declared: Option = each.metadata["option"]
    flags = declared.flags or ("--" + each.name.replace("_", "-"),)
    if hint is bool:
        return click.option(*flags, each.name, is_flag=True, help=declared.help)
    default = None if each.default is MISSING else each.default
    return click.option(
        *flags, each.name, default=None if declared.multiple or default == () else default, help=declared.help, metavar=declared.metavar,
        type=_type(declared, hint), nargs=2 if declared.pair else 1, multiple=declared.multiple or get_origin(hint) is tuple,
        show_default=declared.shown and default not in (None, "", ()), callback=_callback(declared) if declared.parse else None)


def _type(declared: Option, hint: object) -> click.ParamType | type:  # type: ignore[type-arg]
    """What click makes of the words."""
    plain = next((kind for kind in (int, float) if not declared.parse and (hint is kind or kind in get_args(hint))), str)
    if declared.file:
        return click.Path(dir_okay=False)
    if declared.choices:
        return click.Choice(list(declared.choices))
    if plain is str or (declared.least, declared.most, declared.above) == (None, None, None):
        return plain
    bound = click.IntRange if plain is int else NumberRange
    return bound(declared.least if declared.above is None else declared.above, declared.most, min_open=declared.above is not None)  # type: ignore[arg-type]


def _callback(declared: Option) -> Callable[[click.Context, click.Parameter, object], object]:
    """Converts the argument; a ValueError is a usage error."""

    def parse(ctx: click.Context, param: click.Parameter, given: object) -> object:
        assert declared.parse is not None
        if given is None or (given == () and not declared.multiple):
            return given
        try:
            return declared.parse(given)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return parse
