"""The summary of a module for a terminal."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from irscope.analysis.summary import Costly, EntryValue, Summary, describe_type
from irscope.graph import Reading
from irscope.ops.module_attributes import Interface
from irscope.render.labels import inside_text
from irscope.render.paint import Paint
from irscope.render.units import bytes_, count, flops, percent, plural, short
from irscope.source import Severity

LABEL = 11
_SHOWN_ELSEWHERE = frozenset({"entry_computation_layout", "is_scheduled", "stack_frames", "name", "snapshot", "ranges", "hints", "guards",
                             "input_paths", "result_paths", "weights"})
"""Attributes of a module that other lines show."""


def summary_lines(summary: Summary, paint: Paint, attrs: Mapping[str, object], file: str = "") -> Iterator[str]:
    """The figures, a line a subject; no line is wider than the terminal. ``attrs`` are the module's own attributes."""
    one = summary.dialect.instruction
    title = short(f"{summary.dialect.module} {summary.name}", paint.width)
    room = paint.width - len(title) - 2
    yield paint(title, "bold") + ("  " + paint(short(file, room), "dim") if file and room >= 12 else "")
    where = f", entry {summary.entry}" if summary.entry else ""
    size = f"{plural(summary.n_nodes, one)} in {plural(summary.n_graphs, summary.dialect.computation)}{where}"
    if summary.n_graphs > 1 and summary.entry:
        size += f" ({count(summary.entry_nodes)})"
    yield from _row("size", [size], paint)
    yield from _row("inputs", _values(summary.inputs, summary.parameter_bytes), paint)
    yield from _row("outputs", _values(summary.outputs, sum(v.bytes for v in summary.outputs)), paint)
    kernels = plural(summary.kernels, "kernel")
    kernels += f" ({plural(summary.fusions, 'fusion')})" if summary.fusions else " if none fuse" if summary.kernels > 1 else ""
    work = [flops(summary.flops, bool(summary.n_open)) if not summary.no_work else "FLOPs unknown",
            f"{bytes_(summary.bytes, bool(summary.n_open))} traffic", kernels]
    if summary.flops and summary.bytes and not summary.n_open:
        work.append(f"{summary.flops / summary.bytes:.3g} FLOP/byte")
    yield from _row("work", work, paint)
    if summary.no_work:
        yield from _row("", [short(" ".join(summary.no_work.split()), paint.width - LABEL - 4)], paint)
    if summary.n_open:
        yield from _row("", [f"the cost of {plural(summary.n_open, 'node')} is not known; sums without it end in +"], paint)
    if summary.critical_nodes > 1:
        shape = f"{count(summary.depth)} deep, {count(summary.width)} wide"
        chain = f"costliest {plural(summary.critical_nodes, 'step')}, {percent(summary.critical_share)} of the time"
        yield from _row("chain", [shape, chain], paint)
    if summary.peak_bytes:
        order = "as scheduled" if summary.scheduled else "in the order of the text"
        yield from _row("memory", [f"peak {bytes_(summary.peak_bytes)} at %{summary.peak_at}, {order}"], paint)
    whole = sum(summary.dtypes.values())
    if whole:
        yield from _row("dtypes", [f"{name} {percent(n / whole)}" for name, n in summary.dtypes.most_common(6)], paint)
    steps = [(name, n) for name, n in summary.ops.most_common() if name not in ("parameter", "constant")]
    yield from _row("operators", [f"{name} {count(n)}" for name, n in steps], paint)
    yield from _row("loops", _loops(summary), paint)
    if summary.sources:
        line, n = summary.sources.most_common(1)[0]
        yield from _row("source", [plural(summary.source_files, "file"), f"most from {short(line, 60)} ({plural(n, one)})"], paint)
    yield from _row("sizes", _sizes(Interface(attrs)), paint)
    yield from _row("guards", Interface(attrs).guards, paint)
    flags = [f"{key} {short(' '.join(str(value).split()), 40)}" for key, value in attrs.items() if key not in _SHOWN_ELSEWHERE]
    yield from _row("attributes", flags, paint)
    if summary.unknown_ops and summary.dialect.primitive:
        yield from _row("unknown", [f"{name} {count(n)}" for name, n in summary.unknown_ops.most_common()], paint)


def costly_lines(costly: Sequence[Costly], n_open: int, paint: Paint) -> Iterator[str]:
    """The costliest nodes as a table, without the ``n_open`` nodes of unknown cost."""
    left_out = f"; without {plural(n_open, 'node')} of unknown cost" if n_open else ""
    about = short(f"share of the estimated time; FLOPs and bytes over all runs{left_out}", paint.width - 11)
    yield paint("costliest", "bold") + "  " + paint(about, "dim")
    figured, sourced = paint.width >= 64, paint.width >= 110
    space = max(20, paint.width - (82 if sourced else 33 if figured else 9))
    for item in costly:
        runs = f" {paint.times}{count(item.times)}" if item.times != 1 else ""
        type, inside = describe_type(item.node.type), inside_text(item.node)
        name = f"%{item.node.name} {item.node.op.name} {type}"
        with_type = f"%{item.node.name} {item.node.op.name} of {inside} {type}"
        if inside and len(with_type) + len(runs) <= space:
            name = with_type
        line = f"  {percent(item.share):>5}  {short(name, space - len(runs)) + runs:<{space}}"
        if figured:
            line += f" {flops(item.flops):>11} {bytes_(item.bytes):>10}"
        if sourced and item.source:
            line += "  " + paint.link(paint(short(item.source, max(10, paint.width - len(line) - 2)), "dim"), item.source)
        yield line.rstrip()
        if not sourced and item.source:
            yield "         " + paint.link(paint(short(item.source, paint.width - 9), "dim"), item.source)


def findings_lines(reading: Reading, paint: Paint, limit: int | None) -> Iterator[str]:
    """The reader's findings: errors and warnings in full, the first ``limit`` of them."""
    findings = sorted((f for f in reading.findings if f.severity > Severity.INFO), key=lambda f: -f.severity)
    if not findings:
        return
    yield ""
    errors = sum(f.severity is Severity.ERROR for f in findings)
    yield paint("findings", "bold") + paint(f"  {plural(errors, 'error')}, {plural(len(findings) - errors, 'warning')}", "dim")
    for finding in findings[:limit]:
        first, *rest = finding.render().splitlines()
        at = f"{finding.source.name}:{finding.place()}" if finding.source is not None and finding.place() is not None else ""
        yield paint.link(paint(first, "red" if finding.severity is Severity.ERROR else "yellow"), at)
        yield from rest
    if limit is not None and len(findings) > limit:
        yield paint(f"... {count(len(findings) - limit)} more: --all lists them", "dim")


def _row(label: str, parts: Sequence[str], paint: Paint) -> Iterator[str]:
    """A label and as many of its parts as the width takes; the first always stands, cut where it must be."""
    if not parts:
        return
    space = paint.width - LABEL - 2
    text = short(parts[0], space)
    separator = f" {paint.dot} "
    for i, part in enumerate(parts[1:], 1):
        left = len(parts) - i - 1
        more = f"{separator}+{left} more" if left else ""
        if len(text) + len(separator) + len(part) + len(more) > space:
            rest = f"{separator}+{left + 1} more"
            text += rest if len(text) + len(rest) <= space else ""
            break
        text += separator + part
    yield "  " + paint(label.ljust(LABEL), "dim") + text


def _values(values: Sequence[EntryValue], size: int) -> list[str]:
    if not values:
        return ["none"]
    shown = [f"{v.name} {describe_type(v.type)}" + (f" = {v.path}" if v.path not in ("", v.name) else "") for v in values]
    return [f"{count(len(values))}, {bytes_(size)}: {shown[0]}", *shown[1:]]


def _sizes(interface: Interface) -> list[str]:
    """The symbolic sizes: their ranges, and their values when the program was made."""
    lines = []
    for symbol, (low, high) in interface.ranges.items():
        most = f"to {high}" if high.isdecimal() else "or more"
        made = f", made for {interface.hints[symbol]}" if symbol in interface.hints else ""
        lines.append(f"{symbol} {low} {most}{made}")
    return lines


def _loops(summary: Summary) -> list[str]:
    known = [f"%{name} {count(trips)} trips" for name, trips in summary.loops if trips is not None]
    unknown = sum(trips is None for _, trips in summary.loops)
    if unknown:
        known.append(f"{plural(unknown, 'loop')} of unknown length (counted as one trip)")
    return known
