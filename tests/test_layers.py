"""The one-way rule of the rooms: each imports only those that data has walked through before (docs/architecture.md)."""
from __future__ import annotations

import ast
from fnmatch import fnmatch
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "irscope"

CHAIN = ["version", "lazy", "source", "graph", "ops", "formats", "expand", "analysis", "passes", "fusion", "query"]
MAY_IMPORT: dict[str, set[str]] = {room: set(CHAIN[:i]) for i, room in enumerate(CHAIN)}
MAY_IMPORT["lint"] = MAY_IMPORT["diff"] = MAY_IMPORT["render"] = set(CHAIN)
MAY_IMPORT["lower"] = set(CHAIN) - {"query"}
MAY_IMPORT["backends"] = MAY_IMPORT["lower"] | {"lower"}
MAY_IMPORT["fleet"] = MAY_IMPORT["lint"] | {"lint"}
MAY_IMPORT["api"] = set(MAY_IMPORT)
# The command line parses, calls and prints: it reaches for no room that computes but through the api.
MAY_IMPORT["cli"] = {"version", "lazy", "source", "graph", "passes", "lint", "diff", "render", "api"}

# Each library that is heavy, or that we may want to replace, stands behind one door.
DOORS: dict[str, tuple[str, ...]] = {
    "llvmlite": ("backends/llvm*.py",),
    "graphviz": ("render/dot.py",),
    "pygraphviz": ("render/dot.py",),
    "rich": ("cli/*.py", "render/terminal*.py"),
    "click": ("cli/*.py",),
    "onnx": ("formats/onnx/package.py",),
    "jaxlib": ("formats/stablehlo/bytecode/print_text.py",),
}

FILES = sorted(PACKAGE.rglob("*.py"))


def imported(tree: ast.AST) -> list[tuple[int, str]]:
    """(line, dotted name) of every import in a file, wherever it stands; ``from irscope import api`` is ``irscope.api``."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.module == "irscope":
                found += [(node.lineno, f"irscope.{alias.name}") for alias in node.names]
            else:
                found.append((node.lineno, ("." * node.level) + (node.module or "")))
    return found


def room_of(path: Path) -> str:
    """The room a file stands in, or the empty string for ``irscope/__init__.py`` and ``__main__.py``."""
    first = path.relative_to(PACKAGE).parts[0]
    return "" if first.startswith("__") else first.removesuffix(".py")


def faults(path: Path, text: str) -> list[str]:
    """What a file imports and must not."""
    room, inside = room_of(path), path.relative_to(PACKAGE).as_posix()
    out = []
    for line, name in imported(ast.parse(text)):
        top, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if not top:
            out.append(f"{inside}:{line}: relative import; write the whole name")
        elif top == "irscope":
            known = target in MAY_IMPORT
            if room and known and target != room and target not in MAY_IMPORT[room]:
                out.append(f"{inside}:{line}: {room} must not import {target}")
        elif top in DOORS and not any(fnmatch(inside, door) for door in DOORS[top]):
            out.append(f"{inside}:{line}: only {', '.join(DOORS[top])} imports {top}")
    return out


def test_every_file_stands_in_a_known_room() -> None:
    assert {room_of(path) for path in FILES} - {""} <= set(MAY_IMPORT)


def test_rooms_import_only_rooms_above() -> None:
    assert [fault for path in FILES for fault in faults(path, path.read_text())] == []


@pytest.mark.parametrize(("file", "text", "fault"), [
    ("graph/node.py", "import irscope.formats.hlo", "graph must not import formats"),
    ("cli/x.py", "from irscope.backends.model import compile_module", "cli must not import backends"),
    ("api/x.py", "from irscope.cli.output import opened", "api must not import cli"),
    ("lint/rule.py", "def f():\n    from irscope.render import dot", "lint must not import render"),
    ("lower/x.py", "from irscope import api", "lower must not import api"),
    ("lower/x.py", "import llvmlite.binding as llvm", "only backends/llvm*.py imports llvmlite"),
    ("render/tree.py", "from click import echo", "only cli/*.py imports click"),
    ("passes/x.py", "from . import y", "relative import"),
])
def test_the_rule_is_able_to_object(file: str, text: str, fault: str) -> None:
    assert fault in "".join(faults(PACKAGE / file, text))
