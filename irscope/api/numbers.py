"""The user's numbers per node, for drawings: a table of names and numbers, or a trace of a profiler, as ``page/overlay.js`` reads them."""
from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from irscope.graph import Module, Node
from irscope.source import UserError
from irscope.source.data_text import json_value

LARGEST = 1e300
"""Larger numbers and NaN are skipped: sums of them might not be finite."""
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
Row = tuple[object, object]


def numbers_by_node(text: str, file: str, module: Module) -> dict[Node, float]:
    """The numbers of the nodes of a module; those of equal names are summed. Raises UserError for a file without numbers of its nodes."""
    sums: dict[str, float] = defaultdict(float)
    for name, number in _rows(text, file, module.name):
        if isinstance(name, str) and isinstance(number, int | float) and not isinstance(number, bool) and abs(number) <= LARGEST:
            sums[name.removeprefix("%")] += number
    places: dict[str, Node] = {}
    for graph in sorted(module.graphs.values(), key=lambda graph: graph.name != module.entry):  # the entry first
        for node in graph.nodes:
            places.setdefault(node.name, node)
            places[f"{graph.name}/{node.name}"] = node
    found: dict[Node, float] = defaultdict(float)
    for name, number in sums.items():
        if name in places:
            found[places[name]] += number
    if not found:
        known = f"none of its {len(sums)} names is in this program" if sums else "it has no lines of a name and a number"
        raise UserError(f"{file}: {known}", 'it may hold {"name": number}, lines of name,number, or a Chrome trace')
    return dict(found)


def _rows(text: str, file: str, module: str) -> Iterator[Row]:
    if not text.lstrip().startswith(("{", "[")):
        dialect = next((mark for mark in "\t;" if mark in text), ",")
        try:
            yield from _table(csv.reader(io.StringIO(text), delimiter=dialect))
        except csv.Error as error:
            raise UserError(f"{file} is not a table: {error}") from None
        return
    try:
        data = json_value(text)
    except ValueError as error:
        raise UserError(f"{file} is not JSON: {error}") from None
    events = data.get("traceEvents") if isinstance(data, dict) else data
    if isinstance(events, list) and any(isinstance(event, dict) and "ph" in event for event in events):
        yield from _trace([event for event in events if isinstance(event, dict)], module.lower())
    elif isinstance(data, dict):
        yield from data.items()
    else:
        yield from (row for one in data if (row := _pair(one)) is not None)


def _table(lines: Iterable[list[str]]) -> Iterator[Row]:
    """The lines that have a name and a number; others, such as a header, are skipped."""
    yield from ((cells[0].strip(), float(cells[1])) for cells in lines if len(cells) > 1 and _NUMBER.fullmatch(cells[1].strip()))


def _pair(one: object) -> Row | None:
    if isinstance(one, list) and len(one) > 1:
        return one[0], one[1]
    if isinstance(one, dict):
        return one.get("name"), one.get("value", one.get("number", one.get("time")))
    return None


def _trace(events: list[dict[str, object]], module: str) -> Iterator[Row]:
    """The microseconds of each instruction: complete events; where events name their module, those of other modules are left out."""
    complete = [(event, args if isinstance(args := event.get("args"), dict) else {}) for event in events if event.get("ph") == "X"]
    modules = [str(args.get("hlo_module") or "").partition("(")[0].lower() for _, args in complete]
    here = module in modules
    for (event, args), named in zip(complete, modules, strict=True):
        if not here or named in ("", module):
            yield args.get("hlo_op") or args.get("name") or event.get("name"), event.get("dur")
