"""The pass registry: built-in passes, those of installed packages and of files, by name, with options: ``fuse-ops{max-depth=10}``.

A built-in pass is a class in a file of ``passes/`` or ``fusion/`` that is named after it: ``fold_constants.py`` holds
``fold-constants``. A package offers passes by entry points of the group ``irscope.passes``, in its pyproject.toml:

    [project.entry-points."irscope.passes"]
    my-pass = "my_package.my_module:MyPass"
"""
from __future__ import annotations

import importlib.util
import re
from functools import cache
from importlib import import_module
from inspect import signature
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any

from irscope.lazy import LazyModule
from irscope.passes.base import Pass
from irscope.source import UserError, did_you_mean
from irscope.source.reads import note_read

if TYPE_CHECKING:
    from importlib import metadata
else:  # needed only for passes of installed packages
    metadata = LazyModule("importlib.metadata")

FOLDERS = ("irscope.passes", "irscope.fusion")
GROUP = "irscope.passes"
OPTIONS = re.compile(r"([\w-]+)\s*(?:\{(.*)\})?$")


def pass_named(text: str) -> Pass:
    """A pass by name, with its options in braces: ``fuse-ops{max-depth=10}``; built-in, or from an installed package.

    Raises UserError for an unknown one.
    """
    found = OPTIONS.match(text.strip())
    name, options = (found[1], found[2] or "") if found else (text, "")
    if (kind := own_pass(name)) is not None:
        return created(kind, options)
    others = installed()
    if name in others:
        return created(imported(others[name]), options)
    known = [*own_passes(), *others]
    raise UserError(f"there is no pass {name!r}", did_you_mean(name, known) or f"the passes are: {', '.join(known)}")


@cache
def own_pass(name: str) -> type[Pass] | None:
    """The built-in pass of a name, found by the name of its file; None if there is none."""
    file = name.replace("-", "_")
    for folder in FOLDERS:
        if file.isidentifier() and importlib.util.find_spec(f"{folder}.{file}") is not None:
            return _defined(import_module(f"{folder}.{file}")).get(name)
    return None


@cache
def own_passes() -> dict[str, type[Pass]]:
    """Every built-in pass, by name."""
    names = [info.name.replace("_", "-") for folder in FOLDERS for info in iter_modules(import_module(folder).__path__)]
    return {name: kind for name in sorted(names) if (kind := own_pass(name)) is not None}


def _defined(module: ModuleType) -> dict[str, type[Pass]]:
    """The passes that a module defines, by name, without those that it imports."""
    own = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, Pass) and v.__module__ == module.__name__]
    return {kind.name: kind for kind in own if kind.name}


def created(kind: type[Pass], options: str) -> Pass:
    """A pass with options such as ``max-depth=10,link-params``; they are the keyword parameters of its ``__init__``."""
    given: dict[str, object] = {}
    known = options_of(kind) if options else {}  # a signature takes as long as a pass over a small graph
    for part in split_outside(options):
        key, _, value = part.partition("=")
        key = key.strip().replace("-", "_")
        if key not in known:
            shown = ", ".join(known).replace("_", "-")
            raise UserError(f"{kind.name} has no option {key!r}", did_you_mean(key, known) or f"it has {shown or 'none'}")
        given[key] = _value(kind.name, key, value.strip() or "true", known[key])
    return kind(**given)


def options_of(kind: type[Pass]) -> dict[str, object]:
    """The options of a pass and their defaults: numbers, words and switches."""
    parameters = signature(kind).parameters.values()
    return {p.name: p.default for p in parameters if isinstance(p.default, bool | int | float | str)}


def split_outside(text: str, mark: str = ",") -> list[str]:
    """The parts of a list separated by commas or another mark, but not inside brackets or quotes."""
    parts, begin, depth, quote = [], 0, 0, ""
    for at, letter in enumerate(text + mark):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter == mark and depth <= 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
        else:
            depth += (letter in "([{") - (letter in ")]}")
    return [part for part in (*parts, text[begin:].strip()) if part]


def _value(owner: str, key: str, text: str, default: Any) -> object:
    """An option's text converted to the type of its default."""
    if isinstance(default, bool):
        if text.lower() not in ("true", "false", "yes", "no", "1", "0"):
            raise UserError(f"{owner}: {key} is true or false, not {text!r}")
        return text.lower() in ("true", "yes", "1")
    try:
        return type(default)(text)
    except ValueError:
        raise UserError(f"{owner}: {key} must be a {type(default).__name__}, not {text!r}") from None


def load_passes(path: str) -> dict[str, type[Pass]]:
    """The passes that a Python file defines, by name. Raises UserError for a file without passes."""
    note_read(path)
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
    found = _defined(module)
    if not found:
        raise UserError(f"{path} defines no pass", "a pass is a subclass of irscope.passes.Pass with a name and a method run(module)")
    return found


def installed() -> dict[str, metadata.EntryPoint]:
    """The passes that installed packages offer, by name, without importing them."""
    return {point.name: point for point in metadata.entry_points(group=GROUP)}


def imported(point: metadata.EntryPoint) -> type[Pass]:
    """The pass behind an entry point. Raises UserError if there is none."""
    package = point.dist.name if point.dist is not None else point.value
    try:
        found = point.load()
    except Exception as error:
        raise UserError(f"the pass {point.name} of {package} fails when it is imported: {type(error).__name__}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Pass)):
        raise UserError(f"{package} offers {point.value} as the pass {point.name}, and it is no subclass of irscope.passes.Pass")
    return found
