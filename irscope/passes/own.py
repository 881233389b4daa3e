"""Passes of the user's own: from a file, and from packages that are installed.

A package offers passes by entry points of the group ``irscope.passes``, in its pyproject.toml:

    [project.entry-points."irscope.passes"]
    my-pass = "my_package.my_module:MyPass"
"""
from __future__ import annotations

import importlib.util
from importlib.metadata import EntryPoint, entry_points

from irscope.passes.base import Pass
from irscope.source import UserError

GROUP = "irscope.passes"


def load_passes(path: str) -> dict[str, type[Pass]]:
    """The passes that a Python file defines, by name. Raises UserError for a file that holds none."""
    spec = importlib.util.spec_from_file_location("irscope_user_passes", path)
    if spec is None or spec.loader is None:
        raise UserError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except Exception as error:
        raise UserError(f"{path} fails when it is imported: {type(error).__name__}: {error}") from error
    # A pass that the file imports is not its own.
    own = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Pass) and v.__module__ == module.__name__]
    found = {kind.name: kind for kind in own if kind.name}
    if not found:
        raise UserError(f"{path} defines no pass", "a pass is a subclass of irscope.passes.Pass with a name and a method run(module)")
    return found


def installed() -> dict[str, EntryPoint]:
    """The passes that installed packages offer, by name; nothing of them is imported yet."""
    return {point.name: point for point in entry_points(group=GROUP)}


def imported(point: EntryPoint) -> type[Pass]:
    """The pass behind an entry point. Raises UserError where there is none."""
    package = point.dist.name if point.dist is not None else point.value
    try:
        found = point.load()
    except Exception as error:
        raise UserError(f"the pass {point.name} of {package} fails when it is imported: {type(error).__name__}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Pass)):
        raise UserError(f"{package} offers {point.value} as the pass {point.name}, and it is no subclass of irscope.passes.Pass")
    return found
