"""A table of an audit, and how it is written: text, json, jsonl or markdown."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib import import_module

from irscope.graph import Module
from irscope.lint.audits.timeline import Timeline
from irscope.source import UserError, did_you_mean
from irscope.source.data_text import strict_json

AUDITS = ("dtype", "shape", "layout", "memory", "parallel")
TEXTS = ("full", "concise", "json", "jsonl", "markdown")
MAX_WIDTH = 60
"""Of a column in text; names of generated instructions are longer than anybody reads."""

Cell = str | float | int | None


@dataclass(slots=True)
class Table:
    """The result of an audit. ``title`` summarises it in one line, ``notes`` state what the table cannot show.

    ``timeline`` has the live bytes along the schedule.
    """

    audit: str
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    timeline: Timeline | None = None


@dataclass(slots=True)
class FileAudit:
    """The tables of one file, one a module."""

    file: str
    tables: list[Table]


def auditor(name: str) -> Callable[[Module], Table]:
    """The audit of a name. Raises UserError for an unknown one."""
    if name not in AUDITS:
        raise UserError(f"there is no audit {name!r}", did_you_mean(name, AUDITS) or f"the audits are {', '.join(AUDITS)}")
    audit: Callable[[Module], Table] = import_module(f"irscope.lint.audits.{name}").audit
    return audit


def write_audits(files: list[FileAudit], format: str) -> str:
    """All tables in a format. Raises UserError for one that has no tables."""
    if format not in TEXTS:
        raise UserError(f"an audit is no list of findings, which {format} is for", f"formats of --audit: {', '.join(TEXTS)}")
    if format == "json":
        return strict_json({"version": 1, "files": [_as_dict(file) for file in files]}, indent=1)
    if format == "jsonl":
        return "\n".join(strict_json({"file": file.file, **_table_dict(table)}) for file in files for table in file.tables)
    write = _markdown if format == "markdown" else _text
    return "\n\n".join(write(file, table) for file in files for table in file.tables)


def _as_dict(file: FileAudit) -> dict[str, object]:
    return {"file": file.file, "findings": [], "edges": [], "audits": [_table_dict(table) for table in file.tables]}


def _table_dict(table: Table) -> dict[str, object]:
    record: dict[str, object] = {name: getattr(table, name) for name in ("audit", "title", "columns", "rows", "notes")}
    return record if table.timeline is None else {**record, "timeline": asdict(table.timeline)}


def _text(file: FileAudit, table: Table) -> str:
    cells = [list(table.columns), *([_cell(cell) for cell in row] for row in table.rows)]
    widths = [min(MAX_WIDTH, max(len(row[i]) for row in cells)) for i in range(len(table.columns))]
    right = [all(_is_figure(row[i]) for row in table.rows) for i in range(len(widths))]
    lines = [f"{file.file}: {table.title}"]
    for row in cells if table.rows else []:
        parts = [_fit(text, width, flush) for text, width, flush in zip(row, widths, right, strict=True)]
        lines.append("  " + "  ".join(parts).rstrip())
    chart = [f"  {row}" for row in table.timeline.chart()] if table.timeline is not None else []
    return "\n".join([*lines, *chart, *(f"  note: {note}" for note in table.notes)])


def _markdown(file: FileAudit, table: Table) -> str:
    lines = [f"### `{file.file}`", "", table.title, ""]
    if table.rows:
        lines += ["| " + " | ".join(table.columns) + " |", "|" + "---|" * len(table.columns)]
        lines += ["| " + " | ".join(_cell(cell).replace("|", "\\|") for cell in row) + " |" for row in table.rows]
    chart = table.timeline.chart() if table.timeline is not None else []
    lines += ["", "```", *chart, "```"] if chart else []
    return "\n".join([*lines, *(f"\n{note}" for note in table.notes)]).rstrip()


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:,.0f}" if isinstance(cell, float) and cell >= 1000 else f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _is_figure(cell: object) -> bool:
    return not isinstance(cell, str) or bool(re.fullmatch(r"[\d.,]+( ([KMG]i)?B| %)?", cell))


def _fit(text: str, width: int, flush_right: bool) -> str:
    text = text if len(text) <= width else text[: width - 3] + "..."
    return text.rjust(width) if flush_right else text.ljust(width)
