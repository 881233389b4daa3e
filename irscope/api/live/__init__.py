"""Objects of a framework in the running program: what ``irscope.load`` asks of them, by what they can do, and never by an import."""
from __future__ import annotations

from irscope.api.live import jax_objects, torch_objects
from irscope.api.live.door import Arguments, Dump, name_of
from irscope.source import UserError

__all__ = ["Arguments", "Dump", "Live", "dump_of"]

Live = jax_objects.JaxObject | torch_objects.TorchObject
DOORS = (*jax_objects.DOORS, *torch_objects.DOORS)
COMPILE = "give what was compiled or exported, or the arguments of a call: docs/api.md lists what irscope.load takes"


def dump_of(what: object, arguments: Arguments) -> Dump:
    """The dump of an object, by the first door whose protocol it has. Raises UserError for other objects."""
    for door in DOORS:
        if isinstance(what, door.protocol):
            return door.dump(what, arguments)
    if callable(what):
        raise UserError(f"{name_of(what)} is a Python function, which nothing has compiled", COMPILE)
    raise UserError(f"an object of type {name_of(what)} is no program that irscope can read", COMPILE)
