"""A folder that a compiler wrote: its modules, the stages of each, and the reports next to them. The names of the files tell the stages."""
from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from irscope.fleet import compile_folder
from irscope.fleet.files import find_files, stem
from irscope.formats.detect import read, read_data
from irscope.graph import Reading
from irscope.source import SourceText
from irscope.source.files import read_bytes

_MODULE = re.compile(r"module_(?P<id>\d+)\.(?P<name>.+?)\.(?P<stage>before_optimizations|\d{4}\..+"
                     r"|(?:sm_\d+\.\d+\w*?_)?[\w\-]*?after_optimizations[\w.\-]*)\.(?:txt|(?:hlo\.)?(?:pb|txtpb)|hlo)(?:\.gz)?")
_PASS = re.compile(r"(?P<number>\d{4})\.(?P<pipeline>.+?)\.after_(?P<after>.+?)(?:\.before_(?P<before>.+))?")
_FOLDER = re.compile(r"module_(?P<id>\d+)\.(?P<name>.+)")
LOWERED, OPTIONS = "module.mlir", "compile_options.pb"
"""What newer releases write into a folder of each module: the program as the framework lowered it, and the options of the compiler."""
REPORTS = ("buffer-assignment", "memory-usage-report")
_REPORT = re.compile(rf"(?P<of>.+)-(?P<kind>{'|'.join(REPORTS)})\.txt")


Key = tuple[str, int, str]
"""Rank, id and name of a module."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The text of a module at one point of its compilation: a file, or ``text``, which the file at ``path`` records."""

    path: str
    name: str
    order: tuple[int, int]
    text: str = ""

    @property
    def is_first(self) -> bool:
        return self.order[0] == 0

    @property
    def is_last(self) -> bool:
        """After all passes."""
        return self.order[0] == 2

    def read(self) -> Reading:
        """Read ``text``, or the file where it is empty. Raises UserError for a file that cannot be read."""
        return read(SourceText(self.path, self.text)) if self.text else read_data(read_bytes(self.path), self.path)

    def words(self) -> str:
        """The stage for a reader: the pass after which it was written and its pipeline, or ``before optimizations``.

        >>> Stage("", "0014.simplification.after_reshape-mover.before_fold", (1, 14)).words()
        '14 reshape-mover (simplification)'
        """
        found = _PASS.fullmatch(self.name)
        if found is None:
            return self.name.replace("_", " ")
        after = found["after"].replace("pipeline-start", "begin")
        return f"{int(found['number'])} {after} ({found['pipeline']})"


@dataclass(slots=True)
class DumpedModule:
    """A module of a dump: its stages in the order in which the compiler wrote them. ``rank`` is the folder of its rank in the dump
    (empty: the dump itself).

    ``reports`` are files beside the stages, by kind; ``label`` is the compiler's own name for the module, where it has one.
    ``inside`` are the files of the module's own folder, by name.
    """

    id: int
    name: str
    rank: str
    stages: list[Stage] = field(default_factory=list)
    reports: dict[str, str] = field(default_factory=dict)
    label: str = ""
    inside: dict[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return self.label or f"module_{self.id:04d}.{self.name}" if self.id >= 0 else self.name

    @property
    def last(self) -> Stage:
        """The text that became code, or the latest there is."""
        return self.stages[-1]


@dataclass(slots=True)
class DumpFolder:
    """``modules`` by id; ``others`` are dumps that are not named as a compiler names them; ``skipped`` files are no dumps."""

    path: str
    modules: list[DumpedModule] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def read_folder(path: str) -> DumpFolder:
    """Sort the files of a folder, and of those below it, into modules and stages. No file is read here."""
    found = find_files([path])
    folder = DumpFolder(path, skipped=found.skipped)
    modules: dict[Key, DumpedModule] = {}
    inside = {file: key for file in (*found.files, *found.skipped) if (key := _key_of_folder(file, path)) is not None}
    for file in found.files:
        if file in inside:
            continue
        placed = _by_xla(file, path) or _by_inductor(file, path)
        if placed is None:
            folder.others.append(file)
            continue
        found_module, stage = placed
        module = modules.setdefault((found_module.rank, found_module.id, found_module.name), found_module)
        module.stages.append(stage)
    _add_reports(modules.values(), found.skipped)
    for file, key in inside.items():
        if key in modules:
            modules[key].inside[os.path.basename(file)] = file
    folder.modules = sorted(modules.values(), key=lambda m: (m.rank, m.id))
    for module in folder.modules:
        module.stages.sort(key=lambda s: s.order)
    return folder


def _by_xla(file: str, root: str) -> tuple[DumpedModule, Stage] | None:
    """The module and stage of a file that XLA named (``--xla_dump_to``)."""
    parts = _MODULE.fullmatch(os.path.basename(file))
    if parts is None:
        return None
    module = DumpedModule(int(parts["id"]), parts["name"], _rank(os.path.dirname(file), root))
    return module, Stage(file, parts["stage"], _order(parts["stage"]))


def _by_inductor(file: str, root: str) -> tuple[DumpedModule, Stage] | None:
    """The module and stage of a file in ``torch_compile_debug``: a folder for each graph, a file for each stage."""
    placed = compile_folder.place_of(file, root)
    if placed is None:
        return None
    module = DumpedModule(placed.number, placed.graph, placed.run, label=placed.graph)
    if placed.provenance:
        module.reports[compile_folder.PROVENANCE] = placed.provenance
    return module, Stage(file, placed.stage, placed.order)


def _order(stage: str) -> tuple[int, int]:
    if stage.startswith("before_optimizations"):
        return 0, 0
    number = stage[:4]
    return (1, int(number)) if number.isdecimal() else (2, 0)


def reports_beside(path: str) -> dict[str, str]:
    """The reports that XLA wrote beside the text of a module, by kind: ``buffer-assignment``, ``memory-usage-report``."""
    of = stem(path)
    return {kind: report for kind in REPORTS if os.path.isfile(report := f"{of}-{kind}.txt")}


def _add_reports(modules: Iterable[DumpedModule], files: Iterable[str]) -> None:
    by_path = {stem(stage.path): module for module in modules for stage in module.stages}
    for file in files:
        found = _REPORT.fullmatch(file)
        if found is not None and found["of"] in by_path:
            by_path[found["of"]].reports[found["kind"]] = file


def _key_of_folder(file: str, root: str) -> Key | None:
    """The key of the module that a LOWERED or OPTIONS file in the module's own folder belongs to; None for any other file."""
    folder, name = os.path.split(file)
    parts = _FOLDER.fullmatch(os.path.basename(folder)) if name in (LOWERED, OPTIONS) else None
    return (_rank(os.path.dirname(folder), root), int(parts["id"]), parts["name"]) if parts is not None else None


def _rank(folder: str, root: str) -> str:
    """The path of the folder of a rank, relative to the root; empty for the root itself."""
    rank = os.path.relpath(folder, root)
    return "" if rank == "." else rank
