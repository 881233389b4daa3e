"""The figures of one file as ``irscope stats`` gives them, and of many."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TypedDict

from irscope.analysis.summary import EntryValue, inputs, outputs
from irscope.analysis.survey import Survey
from irscope.fleet.pool import map_files
from irscope.formats.detect import called, read_data
from irscope.graph import Reading, TensorType, TupleType, Type
from irscope.source import Severity, UserError
from irscope.source.budget import fresh_budget
from irscope.source.files import read_bytes


class SignatureValue(TypedDict):
    """An input or output; ``dtype`` and ``shape`` are null where it is no tensor."""

    name: str
    dtype: str | None
    shape: list[int | str] | None


class CutStats(TypedDict):
    """What a text that was cut off still has; the entry is null where its header is missing."""

    complete: int
    entry: str | None


class Stats(TypedDict, total=False):
    """The record of one file; its keys are a promise of the command line. ``help`` says what to do about ``error``, for people only."""

    file: str
    format: str | None
    ok: bool
    error: str | None
    help: str
    graphs: int
    nodes: int
    ops: dict[str, int]
    parameters: int | None
    parameter_bytes: int | None
    flops: int | None
    bytes: int | None
    cut: CutStats
    inputs: list[SignatureValue]
    outputs: list[SignatureValue]


def stats_of(files: Sequence[str], from_: str | None = None, signature: bool = False, jobs: int | None = None) -> Iterator[Stats]:
    """The figures of each file, in order, whatever happens to the others."""
    return map_files(partial(stats_of_file, from_=from_, signature=signature), _died, files, jobs)


def stats_of_file(file: str, from_: str | None = None, signature: bool = False) -> Stats:
    """The figures of one file. No content of the file makes it raise."""
    try:
        with fresh_budget(called(file)):
            reading = read_data(read_bytes(file), file, from_)
            return stats_of_reading(reading, file, signature)
    except UserError as error:
        return _failed(file, _error_of(error), from_, error.help)
    except (MemoryError, RecursionError) as error:
        return _failed(file, f"1:1: too much for this machine ({type(error).__name__})", from_)
    except Exception as error:
        # A defect of ours on one file of thousands must not cost the user the answers about the others.
        return _failed(file, f"1:1: defect of irscope: {type(error).__name__}: {error}"[:300], from_)


def stats_of_reading(reading: Reading, file: str, signature: bool = False) -> Stats:
    """The figures of what was read; several modules in one text are added up, the signature is the first one's."""
    surveys = [Survey(module) for module in reading.modules]
    ops: Counter[str] = Counter()
    for survey in surveys:
        ops.update(survey.ops)
    entries = [s.entry for s in surveys if s.entry is not None]
    wrong = next((finding for finding in reading.findings if finding.severity is Severity.ERROR), None)
    error = f"{wrong.place() or '1:1'}: {wrong.message}" if wrong is not None else "1:1: nothing was read"
    record = Stats(
        file=file, format=reading.format, ok=reading.ok, error=None if reading.ok else error,
        graphs=sum(len(s.module.graphs) for s in surveys), nodes=sum(ops.values()), ops=dict(ops.most_common()),
        parameters=sum(len(entry.params) for entry in entries), parameter_bytes=sum(s.parameter_bytes() for s in surveys),
        flops=round(sum(s.totals.flops for s in surveys)), bytes=round(sum(s.totals.bytes for s in surveys)))
    cut = next((module.cut for module in reading.modules if module.cut is not None), None)
    if cut is not None:  # what the missing part holds is unknown
        record["cut"] = CutStats(complete=len(cut.complete), entry=cut.entry)
        record["parameters"] = record["parameter_bytes"] = record["flops"] = record["bytes"] = None
    if not reading.ok and wrong is not None and wrong.help:
        record["help"] = wrong.help
    if signature:
        entry = surveys[0].entry if surveys else None
        record["inputs"] = [_signature(v) for v in inputs(entry)]
        record["outputs"] = [_signature(v) for v in outputs(entry)]
    return record


def _signature(value: EntryValue) -> SignatureValue:
    type: Type = value.type
    if isinstance(type, TensorType):
        return {"name": value.name, "dtype": type.dtype.name, "shape": [d if isinstance(d, int) else str(d) for d in type.shape]}
    return {"name": value.name, "dtype": "tuple" if isinstance(type, TupleType) else None, "shape": None}


def _error_of(error: UserError) -> str:
    placed = next((finding for finding in error.findings if finding.place() is not None), None)
    return f"{placed.place()}: {placed.message}" if placed is not None else f"1:1: {error.message}"


def _failed(file: str, error: str, format: str | None = None, help: str = "") -> Stats:
    record = Stats(file=file, format=format, ok=False, error=error, graphs=0, nodes=0, ops={}, parameters=0, parameter_bytes=0, flops=0,
                   bytes=0)
    if help:
        record["help"] = help
    return record


def _died(file: str, why: str) -> Stats:
    return _failed(file, f"1:1: {why or 'the process that read it died (out of memory?)'}")
