"""The one-way rule of the rooms: each imports only those that data has walked through before (docs/architecture.md)."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from irscope.graph.collector import collector_paused

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


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    with collector_paused():  # it would look through all trees again and again
        return {path: ast.parse(path.read_text()) for path in FILES}


def statements(tree: ast.AST) -> Iterator[ast.stmt | ast.ExceptHandler]:
    """All statements and clauses of a file, without the expressions in them."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.stmt, ast.ExceptHandler)):
            yield node
        for name in ("body", "handlers", "orelse", "finalbody", "cases"):
            inner = getattr(node, name, None)
            stack += inner[::-1] if isinstance(inner, list) else ()


def imported(tree: ast.AST) -> list[tuple[int, str]]:
    """(line, dotted name) of every import in a file, wherever it stands; ``from irscope import api`` is ``irscope.api``."""
    found = []
    for node in statements(tree):
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


def faults(path: Path, tree: ast.AST) -> list[str]:
    """What a file imports and must not."""
    room, inside = room_of(path), path.relative_to(PACKAGE).as_posix()
    out = []
    for line, name in imported(tree):
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


def test_rooms_import_only_rooms_above(trees: dict[Path, ast.Module]) -> None:
    assert [fault for path, tree in trees.items() for fault in faults(path, tree)] == []


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
    assert fault in "".join(faults(PACKAGE / file, ast.parse(text)))


# The errors of Python's own look-ups and of broken assumptions. A clause that catches one of them around irscope's code hides defects.
HIDING = {"KeyError", "IndexError", "LookupError", "TypeError", "AttributeError", "AssertionError", "ZeroDivisionError",
          "Exception", "BaseException"}
CATCHES: dict[str, tuple[int, str]] = {
    # What comes from outside: files, arrays, settings, other libraries and the operating system.
    "api/checking.py": (1, "shapes in the settings"),
    "api/live/jax_objects.py": (1, "jax, whose releases take other arguments"),
    "api/live/torch_objects.py": (1, "torch's serializer"),
    "api/environment.py": (1, "a broken llvmlite, which the report shows"),
    "lower/memory.py": (1, "arrays of other libraries"),
    "expand/given.py": (1, "arrays from a file"),
    "backends/program_file.py": (1, "a file of the cache, whose header is JSON of any form"),
    "formats/onnx/isolation.py": (2, "the onnx package, in a process of its own"),
    "formats/relay/metadata.py": (1, "JSON and arrays in a text"),
    "formats/export/runnable.py": (1, "Python's parser"),
    "formats/stablehlo/bytecode/print_text.py": (2, "jaxlib's exceptions, which have no common class"),
    "lint/baseline.py": (2, "JSON files"),
    "ops/custom_calls.py": (1, "the configuration of a library in a call, which is JSON of any form"),
    "expand/manual.py": (1, "the text of a sharding"),
    "source/arrays.py": (1, "files of arrays"),
    "source/cores.py": (1, "what Linux alone has"),
    "source/data_text.py": (2, "Python's parsers of literals and numbers"),
    "source/checkpoints.py": (1, "files of weights"),
    "source/memory.py": (2, "the operating system"),
    # Single look-ups, and single calls of Python's own functions.
    "expand/torchscript/python_values.py": (3, "one call of a function of Python's, with values of the program"),
    "formats/hlo/lines.py": (1, "a look-up: names of operands"),
    "formats/relay/scopes.py": (1, "a look-up: names of operators"),
    "formats/stablehlo/building/module.py": (1, "a look-up: values of operands"),
    "formats/stablehlo/lines.py": (1, "a look-up: names of operands"),
    "ops/checked.py": (2, "a look-up: sizes and items"),
    # What reports a defect, or cleans up and raises it again.
    "api/capturing.py": (2, "what is raised again after the files are removed; a file without a name"),
    "backends/stopping.py": (1, "what is raised again in another thread"),
    "cli/errors.py": (1, "the report of a defect"),
    "fleet/stats.py": (1, "the row of a file with a defect"),
    "formats/hlo/careful.py": (1, "what is raised again after a stand-in is made"),
    "passes/manager.py": (1, "what is raised again with the name of the pass"),
    "passes/registry.py": (2, "modules of users"),
}
"""The number of clauses of a file that catch such an error, and what raises it."""


def hiding(tree: ast.AST) -> list[int]:
    """The lines of the clauses that catch errors of look-ups, by their names or by a name that the file gives to a tuple of them."""
    found = list(statements(tree))
    tuples = {target.id for node in found if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple) and caught(node.value)
              for target in node.targets if isinstance(target, ast.Name)}
    return [node.lineno for node in found if isinstance(node, ast.ExceptHandler)
            and (node.type is None or caught(node.type) or any(isinstance(n, ast.Name) and n.id in tuples for n in ast.walk(node.type)))]


def caught(expression: ast.AST) -> set[str]:
    """The errors of look-ups among the names of an expression."""
    return {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)} & HIDING


def test_no_clause_hides_defects_but_those_with_a_reason(trees: dict[Path, ast.Module]) -> None:
    found = {path.relative_to(PACKAGE).as_posix(): hiding(tree) for path, tree in trees.items()}
    counts = {name: len(lines) for name, lines in found.items() if lines}
    assert counts == {name: count for name, (count, _) in CATCHES.items()}, {name: found.get(name) for name in found if found[name]}


@pytest.mark.parametrize(("text", "count"), [
    ("try:\n f()\nexcept (TypeFault, KeyError):\n pass\n", 1), ("try:\n f()\nexcept:\n pass\n", 1),
    ("FAULTS = (ValueError, IndexError)\ntry:\n f()\nexcept FAULTS:\n pass\n", 1),
    ("try:\n f()\nexcept (TypeFault, UserError):\n pass\n", 0)])
def test_a_clause_that_hides_defects_is_found(text: str, count: int) -> None:
    assert len(hiding(ast.parse(text))) == count
