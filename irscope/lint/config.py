"""The project's own settings: ``[tool.irscope]`` in pyproject.toml, or irscope.toml; every key is known and checked."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from irscope.fusion import AUTO, policy_named
from irscope.lint.gate import check_rule
from irscope.lint.gates.expect_dtype import DTYPES
from irscope.lint.machine import machine_named
from irscope.source import Severity, SourceText, UserError, did_you_mean
from irscope.source.data_text import toml_table
from irscope.source.files import read_plain_text
from irscope.source.sizes import parse_size

NAMES = ("irscope.toml", "pyproject.toml")
"""In one folder the first wins."""

_DEMANDS = {
    "policy": "policy", "device": "text", "machine": "machine", "max-kernels": "count", "max-traffic": "size", "max-memory": "size",
    "require-fused": "texts", "expect-dtype": "dtype", "where": "text",
}  # fmt: skip
_LINT = {"select": "rules", "ignore": "rules", "fail-on": "severity", **_DEMANDS}
_SUPPRESS = {
    "rule": "rule", "reason": "text", "until": "date", "path": "text", "scope": "text", "node": "text", "source": "text",
}  # fmt: skip
_EQUALITY = {
    "inputs": "text", "weights": "text", "constants": "text", "expect": "text", "previous": "text", "rtol": "number", "atol": "number",
    "seed": "count", "shapes": "table",
}  # fmt: skip
_CHECK = {"models": "texts", "lint": "flag", "baseline": "text", "model": "list", **_DEMANDS, **_EQUALITY}
_MODEL = {"path": "text", **_DEMANDS, **_EQUALITY}
_TOP = {**_LINT, "format": "text", "baseline": "text", "per-path": "table", "per-scope": "table", "suppress": "list", "check": "table"}
_SCOPE = {"ignore": "rules"}

KEYS = {"": _TOP, "per-path": _LINT, "per-scope": _SCOPE, "suppress": _SUPPRESS, "check": _CHECK, "check.model": _MODEL}
"""The tables and their keys, each with the sort of its value."""


@dataclass(slots=True)
class Suppression:
    """One accepted pattern of findings. Empty fields match everything; the others may contain ``*``. ``offset`` is its place."""

    rule: str
    reason: str
    until: datetime.date | None = None
    path: str = ""
    scope: str = ""
    node: str = ""
    source: str = ""
    offset: int = -1
    used: int = 0


@dataclass(slots=True)
class Config:
    """The settings of a project; keys are those of the file with dashes turned to underscores, values checked."""

    source: SourceText
    folder: Path
    top: dict[str, Any] = field(default_factory=dict)
    per_path: dict[str, dict[str, Any]] = field(default_factory=dict)
    per_scope: dict[str, dict[str, Any]] = field(default_factory=dict)
    suppressions: list[Suppression] = field(default_factory=list)
    check: dict[str, Any] | None = None

    def resolve(self, name: str) -> str:
        """A file name in the settings, resolved relative to their folder."""
        return str(self.folder / name)


def find_config(start: str | Path) -> Config | None:
    """The settings nearest to a file or folder, looking upwards; a pyproject.toml without ``[tool.irscope]`` is skipped."""
    here = Path(start).resolve()
    for folder in (here, *here.parents) if here.is_dir() else here.parents:
        for name in NAMES:
            path = folder / name
            if path.is_file():
                found = _read(path, _shown(path))
                if found is not None:
                    return found
    return None


def read_config(path: str) -> Config:
    """The settings of one file, whatever its name. Raises UserError if there are none."""
    found = _read(Path(path), path)
    if found is None:
        raise UserError(f"{path} has no [tool.irscope]", "a pyproject.toml holds the settings there, an irscope.toml at its top")
    return found


def _shown(path: Path) -> str:
    """The path as a user in the current folder would write it."""
    try:
        return path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        return str(path)


def _read(path: Path, name: str) -> Config | None:
    text = read_plain_text(path, name)
    own = path.name != "pyproject.toml"
    if not own and "irscope" not in text:
        return None
    try:
        data: Any = _parsed(text)
    except ValueError as error:
        raise UserError(f"{name}: {error}", "TOML: https://toml.io") from None
    tools = data.get("tool", {})
    if not isinstance(tools, Mapping):
        raise UserError(f"{name}: [tool] is not a table", "[tool.irscope] holds the settings")
    table = data if own and "tool" not in data else tools.get("irscope")
    if table is None:
        return None
    reader = _Reader(SourceText(name, text), "" if table is data else "tool.irscope")
    return reader.config(table, path.resolve().parent)


@lru_cache(4)
def _parsed(text: str) -> Any:
    """The table of a text, for reading alone: a command looks for its settings more than once. Raises ValueError."""
    return toml_table(text)


class _Reader:
    def __init__(self, source: SourceText, prefix: str) -> None:
        self.source, self.prefix = source, prefix

    def config(self, table: object, folder: Path) -> Config:
        top = self.table(table, "", "")
        made = Config(self.source, folder, top)
        for name in ("per-path", "per-scope"):
            found = {
                pattern: self.table(inner, name, f"{name}.{pattern!r}") for pattern, inner in top.pop(name.replace("-", "_"), {}).items()
            }
            setattr(made, name.replace("-", "_"), found)
        starts = [match.start() for match in re.finditer(r"^[ \t]*\[\[\s*(?:tool\.irscope\.)?suppress\s*\]\]", self.source.text, re.M)]
        for number, inner in enumerate(top.pop("suppress", [])):
            given = self.table(inner, "suppress", "suppress")
            for key in ("rule", "reason"):
                if not given.get(key):
                    why = "write why it is accepted" if key == "reason" else "a code, a name or a family: rule = 'BRD001'"
                    raise self.fault("suppress", f"a suppression has no {key}", why)
            made.suppressions.append(Suppression(**given, offset=starts[number] if number < len(starts) else 0))
        if "check" in top:
            made.check = self.table(top.pop("check"), "check", "check")
            made.check["model"] = [self.table(inner, "check.model", "check.model") for inner in made.check.get("model", [])]
            for model in made.check["model"]:
                if not model.get("path"):
                    raise self.fault("model", "a [[check.model]] has no path", "path = 'exports/model.hlo', or a pattern")
        return made

    def table(self, table: object, kind: str, where: str) -> dict[str, Any]:
        """The keys of one table, checked. Raises UserError with the nearest known key."""
        title = f"[{'.'.join(part for part in (self.prefix, where) if part)}]" if self.prefix or where else "the top of the file"
        if not isinstance(table, Mapping):
            raise self.fault(where.rpartition(".")[2], f"{title} is not a table")
        known = KEYS[kind]
        made: dict[str, Any] = {}
        for key, value in table.items():
            if key not in known:
                hint = did_you_mean(key.replace("_", "-"), known) or f"known are {', '.join(known)}"
                raise self.fault(key, f"{title} has no key {key!r}", hint)
            made[key.replace("-", "_")] = self.value(key, value, known[key], title)
        return made

    def value(self, key: str, value: Any, sort: str, title: str) -> Any:
        right, wanted = _SORTS[sort]
        if not right(value):
            raise self.fault(key, f"{key} in {title} is {value!r}", f"it takes {wanted}")
        if sort in ("texts", "rules"):
            value = (value,) if isinstance(value, str) else tuple(value)
        if sort == "date" and isinstance(value, str):
            return datetime.date.fromisoformat(value)
        if sort == "date" and isinstance(value, datetime.datetime):
            return value.date()
        if sort == "severity":
            return Severity[value.upper()]
        for word in value if isinstance(value, tuple) else (value,):
            try:
                if sort in _CHECKS:
                    _CHECKS[sort](word)
            except UserError as error:
                message = error.message if sort == "size" else f"{key} in {title}: {error.message}"
                raise self.fault(key, message, error.help, word) from None
        return parse_size(value) if sort == "size" else value

    def fault(self, key: str, message: str, help: str = "", word: object = None) -> UserError:
        """The error, with the line on which the word stands in quotes, or else the key stands first."""
        quoted = re.search(rf"[\"']{re.escape(word)}[\"']", self.source.text) if isinstance(word, str) else None
        named = rf"^[ \t\[]*(?:[\w.\-]*\.)?[\"']?{re.escape(key)}[\"']?\s*[=\]]"
        found = quoted or (re.search(named, self.source.text, re.M) if key else None)
        line = f":{self.source.text.count(chr(10), 0, found.end()) + 1}" if found else ""
        return UserError(f"{self.source.name}{line}: {message}", help)


def _known_rule(word: str) -> None:
    if word.upper() != "ALL":
        check_rule(word)


def _known_policy(name: str) -> None:
    if name != AUTO:
        policy_named(name)


def _known_machine(word: str) -> None:
    """The file of a table lies beside the settings, and is read when it is needed."""
    if not word.endswith(".toml"):
        machine_named(word)


def _known_dtype(word: str) -> None:
    if word not in DTYPES:
        raise UserError(f"{word!r} cannot be expected", did_you_mean(word, DTYPES) or f"one of {', '.join(DTYPES)} can")


def _is_texts(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(v, str) for v in value))


def _is_date(value: object) -> bool:
    if isinstance(value, str):
        try:
            datetime.date.fromisoformat(value)
        except ValueError:
            return False
        return True
    return isinstance(value, datetime.date)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_number(value: object) -> bool:
    """A float, or a whole number that is one."""
    if isinstance(value, float):
        return value >= 0
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 1023


_SORTS: dict[str, tuple[Any, str]] = {
    "text": (lambda v: isinstance(v, str), "a text"),
    "texts": (_is_texts, "a list of texts"),
    "rules": (_is_texts, "a list of codes, names or families of rules"),
    "rule": (lambda v: isinstance(v, str), "a code, a name or a family of rules"),
    "policy": (lambda v: isinstance(v, str), "the name of a fusion policy"),
    "machine": (lambda v: isinstance(v, str), "the name of a machine, or its TOML file"),
    "dtype": (lambda v: isinstance(v, str), "the name of an element type"),
    "count": (_is_count, "a whole number from 0"),
    "number": (_is_number, "a number from 0"),
    "size": (lambda v: isinstance(v, str) or _is_count(v), "a number of bytes, or a size such as '1.5GiB'"),
    "flag": (lambda v: isinstance(v, bool), "true or false"),
    "severity": (lambda v: v in ("error", "warning", "info"), "error, warning or info"),
    "date": (_is_date, "a date such as 2026-12-31"),
    "table": (lambda v: isinstance(v, dict), "a table"),
    "list": (lambda v: isinstance(v, list), "a list of tables: [[...]]"),
}

_CHECKS: dict[str, Callable[[Any], object]] = {
    "rules": _known_rule, "rule": check_rule, "policy": _known_policy, "machine": _known_machine, "dtype": _known_dtype, "size": parse_size,
}  # fmt: skip
"""What raises UserError for a word that means nothing."""
