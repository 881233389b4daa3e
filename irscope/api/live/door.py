"""A kind of object of a running program that ``irscope.load`` takes: the methods that it has, and how its dump is asked for."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from irscope.lazy import Array


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a function is lowered for: arrays, or objects with a shape and a dtype. False without any."""

    args: Sequence[object] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.args or self.kwargs)


@dataclass(frozen=True, slots=True)
class Dump:
    """A text or file of an object, and the values that its program holds beside it, by name."""

    data: str | bytes
    values: Mapping[str, Array] | None = None


@dataclass(frozen=True, slots=True)
class Door:
    """``protocol`` is a runtime-checkable protocol; ``dump`` gives the dump of an object that has it.

    ``dump`` raises UserError for what cannot be dumped; errors of the framework while it lowers or compiles are the caller's.
    """

    protocol: type[Any]
    dump: Callable[[Any, Arguments], Dump]


def name_of(what: object) -> str:
    """The type of an object for messages: ``jax's Lowered``."""
    kind = type(what)
    return f"{kind.__module__.partition('.')[0]}'s {kind.__qualname__}" if kind.__module__ != "builtins" else kind.__qualname__
