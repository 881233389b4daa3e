"""A range of numbers on the command line, without NaN."""
from __future__ import annotations

from typing import Any

import click


class NumberRange(click.FloatRange):
    """A range of numbers. click lets NaN through, which no comparison refuses: a check with such a tolerance would always pass."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if found != found:
            self.fail(f"{value} is not a number", param, ctx)
        return found
