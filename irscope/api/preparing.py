"""Prepares a dump for a compiler or the interpreter: reads it, binds what it leaves open, and finds its arrays."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irscope.analysis.soundness import Use, require
from irscope.api.array_files import Files, RecordedArrays
from irscope.api.arrays import Arrays, by_graph_names, read_files, with_arguments
from irscope.api.binding import bound
from irscope.api.loading import Source, first_module, whole
from irscope.api.options import RunOptions
from irscope.api.targeting import check_cpu
from irscope.api.watching import Watcher
from irscope.graph import Module
from irscope.ops.module_attributes import Interface
from irscope.source.arrays import Joined


@dataclass(frozen=True, slots=True)
class Preparation:
    """A module with everything bound, its arrays, the names of the given inputs that were looked at, and names of inputs by their places
    in the user's call. ``has_own_data``: inputs are in the dump itself, or constants in files beside it, which no key of the cache
    covers."""

    module: Module
    arrays: Arrays
    read: Sequence[str]
    renamed: Mapping[str, str]
    has_own_data: bool


def prepared(what: Source, options: RunOptions, given: Files, watch: Watcher) -> Preparation:
    """Read a dump and bind what it leaves open. Raises UserError for what cannot run."""
    with watch.stage("reading"):
        reading = whole(what, options.source_format)
    check_cpu(options)
    first = first_module(reading, watch)
    files = read_files(options, given, watch)
    recorded = RecordedArrays(files.inputs)
    renamed = {path: name for name, path in Interface.of(first).input_paths.items() if path in recorded}
    files = with_arguments(by_graph_names(Files(recorded, files.weights, files.constants), first), first, reading.arguments, watch)
    if first.is_primitive:  # a program's types follow from the arrays that it is given: they are checked when it is opened
        require(reading, first, Use.RUN)
    if first.stored:
        files = Files(files.inputs, Joined([files.weights, first.stored]), files.constants)
    module = bound(options, first, files, watch)
    return Preparation(module, Arrays(options, module, files, watch), list(recorded.read), renamed,
                       bool(reading.arguments) or reading.has_other_files)
