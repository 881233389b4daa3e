"""Compiled programs in the cache: a run of the same text with the same options starts without the reader and the compiler.

A program is stored under a key of everything that it depends on (:mod:`irscope.backends.program_key`). What it depends on of its inputs is
known only when it is compiled: their types, and the values of those that became numbers. So there are two entries: the first, under the
key of text, options and weights, lists the inputs that matter; the second is stored under the key of the first and those inputs.

This file imports nothing that reads or compiles dumps: imports take most of the time of a warm start of a small program.
"""
from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

from irscope.api.array_files import Files
from irscope.api.options import RunOptions
from irscope.api.watching import Watcher
from irscope.backends import cache
from irscope.backends.arguments import draw, draw_weight, fitted
from irscope.backends.executable import Port
from irscope.backends.program_file import BadProgramFile, CompiledProgram, of_content, port_of, port_row, to_pieces
from irscope.backends.program_key import digest_of_array, digest_of_bytes, digest_of_file, program_key, signature_of
from irscope.lazy import Array, np
from irscope.source import UserError
from irscope.source.arrays import Joined, Renamed, read_arrays
from irscope.source.cores import available_threads
from irscope.source.data_text import json_value
from irscope.source.files import STDIN, path_or_empty

IRRELEVANT = frozenset("inputs weights constants seed save_outputs expect expect_from check rtol atol engine threads partitions no_cache "
                       "bench bench_seconds warmup runs target cache_weights profile peak kernel".split())
"""Options that no compiled program depends on, and those that :class:`ProgramStore` handles itself."""
LITTLE = 4 << 20
"""Bytes of weights and constants that are stored without a request: tables, biases, small matrices."""


class NoteRecorder(Watcher):
    """Passes notes and stages on to another watcher, and keeps the notes for later runs."""

    def __init__(self, watch: Watcher) -> None:
        self._watch = watch
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)
        self._watch.note(text)

    @contextmanager
    def stage(self, label: str, total: int | None = None) -> Iterator[Callable[[], None]]:
        with self._watch.stage(label, total) as advance:
            yield advance


@dataclass(frozen=True, slots=True)
class InputPort:
    """An input of a program: its number among all tensors of the entry, the name of the array that was given for it (None: it is drawn),
    and whether it is a parameter of a model, which is drawn to another scale."""

    port: Port
    number: int
    given: str | None
    is_parameter: bool


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a run needs of its module, besides the program. ``renamed`` are names of inputs by their places in the user's call; ``notes``
    were reported about the files ``files``; ``outputs`` are the ports of the text."""

    inputs: Sequence[InputPort]
    outputs: Sequence[Port]
    renamed: Mapping[str, str]
    paths: Sequence[str]
    notes: Sequence[str]
    files: Sequence[str]
    flops: float
    flushes_denormals: bool

    def as_data(self) -> dict[str, Any]:
        """The same as data for JSON."""
        inputs = [[port_row(i.port), i.number, i.given, i.is_parameter] for i in self.inputs]
        return {**{f.name: getattr(self, f.name) for f in fields(self)}, "inputs": inputs, "outputs": [port_row(p) for p in self.outputs],
                "renamed": dict(self.renamed)}

    @staticmethod
    def of_data(data: Mapping[str, Any]) -> RunFacts:
        """The facts of :meth:`as_data`. Raises KeyError, TypeError or ValueError for other data."""
        inputs = [InputPort(port_of(row), int(number), given, bool(parameter)) for row, number, given, parameter in data["inputs"]]
        return RunFacts(inputs, [port_of(row) for row in data["outputs"]], dict(data["renamed"]), tuple(data["paths"]),
                        tuple(data["notes"]), tuple(data["files"]), float(data["flops"]), bool(data["flushes_denormals"]))

    def arrays(self, inputs: Mapping[str, Array], options: RunOptions) -> list[Array]:
        """An array for each input, as given or drawn. Raises UserError where one does not fit."""
        named = Renamed(inputs, self.renamed) if self.renamed else inputs
        source = " and ".join(options.inputs) or "inputs"
        return [fitted(named[each.given], each.port, f"{source}: {each.given}") if each.given is not None
                else (draw_weight if each.is_parameter else draw)(each.port, options.seed, each.number) for each in self.inputs]


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """A program from the cache."""

    compiled: CompiledProgram
    facts: RunFacts


class ProgramStore:
    """The entries for one text with its options. ``files`` are the path of the text (empty if it is in memory) and the files of the
    options, ``contents`` the states of the files before they were read for the key, ``inputs`` the given arrays, ``opened`` the arrays of
    their files by path. ``fault`` says why an entry is not used."""

    def __init__(self, key: str, files: Sequence[str], contents: Mapping[str, tuple[int, ...]], opened: Mapping[str, Mapping[str, Array]],
                 inputs: Mapping[str, Array]) -> None:
        self._key, self.files, self._contents = key, list(files), contents
        self.opened, self.inputs = opened, inputs
        self.fault = ""

    @staticmethod
    def of(what: object, options: RunOptions, given: Files, purpose: str = "run") -> ProgramStore | None:
        """The store for a run, or for another purpose with rules of its own; None where the program is not cached: no cache, simulated
        devices, a text that can be read only once."""
        if options.no_cache or options.engine != "llvm" or options.partitions > 1 or cache.folder() is None or cache.refusal():
            return None
        if not options.cache_weights and _bytes_of_weights(options, given) > LITTLE:
            return None  # nothing would be stored: their digests would cost more than they save
        path = path_or_empty(what)
        contents = [*([path] if path else []), *_fixed_files(options)]
        states = dict(zip(contents, _state_of(contents), strict=True))
        digests = [digest_of_file(each) for each in contents]
        text = "" if path else _digest_of_text(what)
        if text is None or path == STDIN or None in digests:
            return None
        try:
            opened = {each: read_arrays(each) for each in options.inputs}
        except UserError:
            return None  # the compiler's own reading reports it
        inputs = Joined([given.inputs, *[opened[each] for each in options.inputs][::-1]])
        named = [("weight", given.weights), ("constant", given.constants)]
        arrays = [f"{kind} {name} {digest_of_array(values[name])}" for kind, values in named for name in values]
        key = program_key([purpose, text, str(len(options.weights)), *map(str, digests), *arrays], _relevant(options), list(inputs))
        return ProgramStore(key, [path, *options.files], states, opened, inputs)

    def find(self) -> StoredProgram | None:
        """The program for these inputs. None where there is none that can be used; :attr:`fault` then says what is wrong with an entry."""
        question = cache.entry(self._key)
        self.fault = question.fault
        if question.content is None:
            return None
        matters = self._matters(question.content.tobytes())
        if matters is None:
            self.fault = "has an unknown structure"
            return None
        found = cache.entry(self._name(*matters))
        self.fault = found.fault
        if found.content is None:
            return None
        try:
            compiled, facts = of_content(found.content, RunFacts.of_data)
        except BadProgramFile as error:
            self.fault = str(error)
            return None
        return StoredProgram(compiled, facts) if not facts.notes or list(facts.files) == self.files else None

    def keep(self, stored: StoredProgram, types: Sequence[str], values: Sequence[str], all_weights: bool) -> None:
        """Store a program that depends on the types of some inputs and on the values of others, by name.

        A program with many constants is stored only with ``all_weights``. Nothing is stored where a file has changed since the key was
        made.
        """
        compiled = stored.compiled
        if (compiled.constant_bytes > LITTLE and not all_weights) or list(self._contents.values()) != _state_of(list(self._contents)):
            return
        compiled.facts = stored.facts.as_data()
        pieces = to_pieces(compiled)
        if pieces is not None and cache.write(self._name(types, values), *pieces):
            cache.write(self._key, json.dumps({"types": list(types), "values": list(values)}).encode())

    def _matters(self, content: bytes) -> tuple[list[str], list[str]] | None:
        """The inputs whose types matter, and those whose values do, as the first entry lists them; None for other content."""
        try:
            data = json_value(content)
        except ValueError:
            return None
        lists = [data.get(key) for key in ("types", "values")] if isinstance(data, dict) else [None]
        names = [[name for name in each if isinstance(name, str) and name in self.inputs] for each in lists if isinstance(each, list)]
        return (names[0], names[1]) if names == lists else None

    def _name(self, types: Sequence[str], values: Sequence[str]) -> str:
        """The key of the program for these inputs."""
        return cache.key(self._key, *(f"{name} {signature_of(self.inputs[name])}" for name in types),
                         *(f"{name} = {digest_of_array(self.inputs[name])}" for name in values))


def _relevant(options: RunOptions) -> dict[str, object]:
    """The options that a program depends on, as data for JSON."""
    found = {f.name: getattr(options, f.name) for f in fields(options) if f.name not in IRRELEVANT}
    found["threads"] = options.threads or available_threads()
    if options.fill_elided:
        found["seed"] = options.seed
    return found


def _bytes_of_weights(options: RunOptions, given: Files) -> int:
    """The bytes of all files and arrays of weights and constants."""
    arrays = [values[name] for values in (given.weights, given.constants) for name in values]
    return sum(state[0] for state in _state_of(_fixed_files(options)) if state) + sum(int(np.asarray(array).nbytes) for array in arrays)


def _fixed_files(options: RunOptions) -> list[str]:
    """The files of weights and constants."""
    return [*options.weights, *([options.constants] if options.constants is not None else [])]


def _digest_of_text(what: object) -> str | None:
    """The digest of a text of several lines, or of bytes; None for all else."""
    if isinstance(what, bytes):
        return "bytes " + digest_of_bytes(what)
    return "text " + digest_of_bytes(what.encode("utf-8", "surrogatepass")) if isinstance(what, str) else None


def _state_of(paths: Sequence[str]) -> list[tuple[int, ...]]:
    """Size, time of change and inode number of files, to detect changes during compilation; empty for a file that is not there."""
    found: list[tuple[int, ...]] = []
    for path in paths:
        try:
            state = os.stat(path)
        except (OSError, ValueError):  # ValueError: a NUL character; reading the file reports both
            found.append(())
        else:
            found.append((state.st_size, state.st_mtime_ns, state.st_ino))
    return found
