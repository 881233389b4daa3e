"""Figures of the sources of irscope: size, shape, and how often rooms reach around what the graph declares.

    python -m benchmarks.house [--list MEASURE] [--json] [FOLDER]

Each figure is counted by the syntax tree (``ast``) of the files in FOLDER (``irscope``). ``--list`` prints the places of one measure, as
``file:line``; docs/house.md has the table of a release beside the one before.
"""
from __future__ import annotations

import argparse
import ast
import json
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
REGISTRIES = ("ops/registry.py", "ops/vocabulary.py")
"""Where operators are looked up by their names."""
TRANSCRIBED = ("fusion/xla/opcodes.py", "fusion/xla/gpu_cycles.py", "fusion/xla/triton.py", "fusion/xla/gemm/support.py")
"""Tables of XLA itself, by its own opcodes."""
LATER = ("formats/stablehlo/", "formats/export/", "formats/onnx/", "formats/inductor/", "formats/hlo_pb/", "expand/onnx/")
"""Formats that came after the table of docs/house.md was begun: their lines of code are counted apart."""
MANY_ARGUMENTS = 6
SCHEMA_DECORATORS = ("operator", "view", "alias")
"""Functions with one of these transcribe the list of arguments of torch or Relay, whatever its length: it is not counted."""
LONG = 60
"""Lines of a long function."""


@dataclass(slots=True)
class File:
    """One file and its syntax tree. ``code`` are its lines without blank ones, comments, docstrings and fixtures of rules."""

    path: str
    text: str
    tree: ast.Module
    code: int = 0

    @property
    def room(self) -> str:
        return self.path.partition("/")[0] if "/" in self.path else ""

    @property
    def lines(self) -> int:
        return self.text.count("\n")


@dataclass(slots=True)
class Figures:
    """What was counted: the places of each measure, and figures that are no counts."""

    places: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    numbers: dict[str, float] = field(default_factory=dict)

    def add(self, measure: str, file: File, node: ast.AST, note: str = "") -> None:
        self.places[measure].append(f"{file.path}:{getattr(node, 'lineno', 1)}{'  ' + note if note else ''}")


def read(folder: Path) -> list[File]:
    """The files of a folder, by path."""
    files = []
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text()
        file = File(path.relative_to(folder).as_posix(), text, ast.parse(text))
        file.code = len(_code_lines(file))
        files.append(file)
    return files


# ---------------------------------------------------------------------- size

def _has_schema(function: ast.FunctionDef) -> bool:
    """Whether a function is declared with the schema of a framework's operator: ``@operator("relu(Tensor self)")``."""
    return any(isinstance(d, ast.Call) and isinstance(d.func, ast.Name) and d.func.id in SCHEMA_DECORATORS and bool(d.args)
               for d in function.decorator_list)


def _code_lines(file: File) -> set[int]:
    """The numbers of lines that hold code."""
    lines = {n for n, line in enumerate(file.text.splitlines(), 1) if line.strip() and not line.lstrip().startswith("#")}
    for node in ast.walk(file.tree):
        if _is_text(node) or _is_fixture(file, node):
            assert isinstance(node, ast.stmt)
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def _is_text(node: ast.AST) -> bool:
    """A docstring, of whatever it is."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_fixture(file: File, node: ast.AST) -> bool:
    """``good = (...)`` and ``bad = (...)`` of a rule."""
    if not file.path.startswith("lint/rules/") or not isinstance(node, ast.Assign | ast.AnnAssign):
        return False
    target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
    return isinstance(target, ast.Name) and target.id in ("good", "bad")


def sizes(files: list[File], figures: Figures) -> None:
    """Lines of files and functions, and functions of many arguments that no framework's schema asks for."""
    lengths = [f.lines for f in files]
    functions = [(f, n, (n.end_lineno or n.lineno) - n.lineno + 1)
                 for f in files for n in ast.walk(f.tree) if isinstance(n, ast.FunctionDef)]
    figures.numbers |= {
        "files": len(files), "lines": sum(lengths), "lines of code": sum(f.code for f in files),
        "lines of code without later formats": sum(f.code for f in files if not f.path.startswith(LATER)),
        "lines a file, median": statistics.median(lengths), "lines a file, most": max(lengths),
        "functions": len(functions), "lines a function, median": statistics.median(n for _, _, n in functions),
    }
    for file, node, length in functions:
        if length > LONG:
            figures.add("long functions", file, node, f"{node.name}: {length}")
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if len([a for a in arguments if a.arg not in ("self", "cls")]) > MANY_ARGUMENTS and not _has_schema(node):
            figures.add("more than 6 arguments", file, node, node.name)


# ---------------------------------------------------------------------- names of operators, attributes and formats

def _is_op_name(node: ast.AST) -> bool:
    """``x.op.name``, or a name for it."""
    if isinstance(node, ast.Name):
        return node.id in ("opcode", "op_name")
    return isinstance(node, ast.Attribute) and node.attr == "name" and _last(node.value) == "op"


def _is_scalar_operation(node: ast.AST) -> bool:
    """``x.op`` of an expression of the tile IR."""
    return isinstance(node, ast.Attribute) and node.attr == "op"


def _last(node: ast.AST) -> str:
    """The last part of a dotted name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_attrs(node: ast.AST) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "attrs") or (isinstance(node, ast.Name) and node.id == "attrs")


def _is_format(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("format", "dialect")


def _holds_strings(node: ast.AST) -> bool:
    """Whether an expression is a string, a collection of strings, or the name of a table."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return all(map(_holds_strings, node.elts))
    return _last(node).lstrip("_").isupper()


def _looked_up(node: ast.AST, what: Callable[[ast.AST], bool]) -> bool:
    """Whether something is compared with strings, matched against them, or looked up in a table by its name."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return any(map(what, sides)) and any(_holds_strings(s) for s in sides if not what(s))
    if isinstance(node, ast.Match):
        return what(node.subject)
    if isinstance(node, ast.Subscript):
        return what(node.slice)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        return (node.func.attr == "get" and what(node.args[0])) or (node.func.attr in ("startswith", "endswith") and what(node.func.value))
    return False


def _attribute_by_name(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return _is_attrs(node.value) and isinstance(node.slice, ast.Constant)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "get" and _is_attrs(node.func.value)
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn) and _is_attrs(node.comparators[0]) \
        and _holds_strings(node.left)


def names(files: list[File], figures: Figures) -> None:
    """Comparisons and look-ups by the name of an operator, an attribute or a format, outside of the rooms that declare them."""
    for file in files:
        if file.room == "formats" or file.path in REGISTRIES:
            continue
        for node in ast.walk(file.tree):
            if file.path not in TRANSCRIBED and _looked_up(node, _is_op_name):
                figures.add("operators by name", file, node)
            if file.room in ("lower", "backends") and isinstance(node, ast.Compare) and _is_scalar_operation(node.left) \
                    and isinstance(node.comparators[0], ast.Constant):
                figures.add("scalar operations of the tile IR by name", file, node)
            if _attribute_by_name(node):
                figures.add("attributes by name", file, node)
            if _looked_up(node, _is_format):
                figures.add("formats by name", file, node)


# ---------------------------------------------------------------------- imports

def imports(files: list[File], figures: Figures) -> None:
    """Imports inside functions, and files that import each other in a circle, at import, for types or when a function runs."""
    modules = {_module(f.path): f for f in files}
    edges: dict[str, set[str]] = {}
    for name, file in modules.items():
        edges[name] = set()
        for node, inside in _imports(file.tree):
            if inside and file.room != "cli" and file.path != "lazy.py":
                figures.add("imports in functions", file, node)
            edges[name] |= _targets(node, modules) - {name}
    for circle in _circles(edges):
        figures.places["import cycles"].append(f"{len(circle)}: {', '.join(sorted(circle)[:6])}{' ...' if len(circle) > 6 else ''}")


def _module(path: str) -> str:
    return "irscope." + path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") if path != "__init__.py" else "irscope"


def _imports(tree: ast.Module) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Every import, and whether it stands in a function."""
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, inside = stack.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import | ast.ImportFrom):
                yield child, inside
            else:
                stack.append((child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)))


def _targets(node: ast.Import | ast.ImportFrom, modules: dict[str, File]) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names if alias.name in modules}
    base = node.module or ""
    return {full if (full := f"{base}.{alias.name}") in modules else base for alias in node.names} & set(modules)


def _circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected components of more than one module (Tarjan's algorithm, with a stack of its own)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    waiting: list[str] = []
    found: list[list[str]] = []
    for root in edges:
        work = [(root, iter(sorted(edges[root])))] if root not in order else []
        while work:
            name, rest = work[-1]
            if name not in order:
                order[name] = low[name] = len(order)
                waiting.append(name)
            for target in rest:
                if target not in order:
                    work.append((target, iter(sorted(edges[target]))))
                    break
                if target in waiting:
                    low[name] = min(low[name], order[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == order[name]:
                    circle = waiting[waiting.index(name):]
                    del waiting[waiting.index(name):]
                    if len(circle) > 1:
                        found.append(circle)
    return found


# ---------------------------------------------------------------------- types, repetition

def types(files: list[File], figures: Figures) -> None:
    """``Any`` in every file, those that parse attributes too (an alias counts once), and names that several classes share."""
    classes = defaultdict(list)
    for file in files:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Name) and node.id == "Any":
                figures.add("Any", file, node)
            elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(f"{file.path}:{node.lineno}")
    figures.places["class names used twice"] = [f"{name}: {', '.join(places)}"
                                                for name, places in sorted(classes.items()) if len(places) > 1]
    figures.numbers["Any a thousand lines"] = round(1000 * len(figures.places["Any"]) / sum(f.lines for f in files), 1)


def equal_functions(files: list[File], figures: Figures) -> None:
    """Functions of three statements or more that are written alike, docstrings aside."""
    found = defaultdict(list)
    for file in files:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.FunctionDef):
                body = [s for s in node.body if not _is_text(s)]
                if sum(isinstance(n, ast.stmt) for s in body for n in ast.walk(s)) >= 3:
                    found[ast.dump(node.args) + "".join(map(ast.dump, body))].append(f"{file.path}:{node.lineno} {node.name}")
    figures.places["equal functions"] = [", ".join(places) for places in found.values() if len(places) > 1]


def measured(folder: Path) -> Figures:
    """All figures of a folder."""
    files, figures = read(folder), Figures()
    for measure in (sizes, names, imports, types, equal_functions):
        measure(files, figures)
    for room, lines in Counter({r: sum(f.code for f in files if f.room == r) for r in {f.room for f in files}}).most_common():
        figures.numbers[f"lines of code in {room or 'no room'}"] = lines
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "irscope")
    parser.add_argument("--list", metavar="MEASURE", help="the places of one measure")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    figures = measured(args.folder)
    if args.list:
        print("\n".join(figures.places.get(args.list, [])))
        return 0
    table = {**figures.numbers, **{name: len(places) for name, places in figures.places.items()}}
    if args.json:
        print(json.dumps(table, indent=1))
    else:
        print("\n".join(f"{value:>12,}  {name}" for name, value in table.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
