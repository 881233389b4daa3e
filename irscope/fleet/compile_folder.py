"""The files of a ``torch_compile_debug`` folder: which graph and which stage each one is, and the logs and traces beside the folder."""
from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from irscope.fleet.files import head_of
from irscope.formats.inductor import is_record, is_trace

ROOT = "torch_compile_debug"
PROVENANCE = "provenance"
PROVENANCE_FILE = "inductor_provenance_tracking_node_mappings.json"
BEFORE, AFTER, IR_BEFORE, IR_AFTER, CODE = (
    "before post-grad passes", "after post-grad passes", "IR before fusion", "IR after fusion", "output code")
STAGES = {"fx_graph_readable.py": BEFORE, "fx_graph_transformed.py": AFTER, "ir_pre_fusion.txt": IR_BEFORE, "ir_post_fusion.txt": IR_AFTER,
          "output_code.py": CODE}
"""The files that Inductor writes for a graph, in the order of its stages."""
BESIDE = 64
"""How many files beside a folder are looked at to find its logs."""
RECORDS = (".log", ".txt", ".gz", "")
_GRAPH = re.compile(r"model__(?P<aot>\w+?)_(?P<count>\d+)\.(?P<number>\d+)")


@dataclass(frozen=True, slots=True)
class FilePlace:
    """The graph that a file is of (``model__0_forward_1.0``), its number in the process, its stage, and the run of the process."""

    graph: str
    number: int
    stage: str
    order: tuple[int, int]
    run: str
    provenance: str


def place_of(file: str, root: str) -> FilePlace | None:
    """The place of a file in such a folder; None where its name or that of its folder is none of Inductor's."""
    folder, name = os.path.split(file)
    stage = STAGES.get(name.removesuffix(".gz"))
    graph = os.path.basename(os.path.abspath(folder))
    parts = _GRAPH.fullmatch(graph)
    if stage is None or parts is None:
        return None
    beside = os.path.join(folder, PROVENANCE_FILE)
    place = list(STAGES.values()).index(stage)
    order = (2, 0) if stage == CODE else (1, place)
    return FilePlace(graph, int(parts["number"]), stage, order, _run(folder, root), beside if os.path.isfile(beside) else "")


def aot_id(graph: str) -> str:
    """``0_forward`` of ``model__0_forward_1.0``, as output code names itself; empty for another name."""
    parts = _GRAPH.fullmatch(graph)
    return parts["aot"] if parts is not None else ""


def to_lint(files: Sequence[str], root: str, edges: bool) -> list[str]:
    """The files of a folder of torch.compile that say something of their own: of each graph one FX text, the scheduler nodes, the code.

    ``edges``: only the scheduler nodes are wanted, for which the folder records what was fused. Other files are kept.
    """
    wanted = (IR_BEFORE,) if edges else (AFTER, IR_BEFORE, CODE)
    stages = {file: place.stage for file in files if (place := place_of(file, root)) is not None}
    if not stages:
        return list(files)
    kept = [file for file in files if (stages[file] in wanted if file in stages else not repeats_stage(file) and not edges)]
    if edges:
        return kept
    beside = list(records_beside(root))
    # A trace has all that a log has, and the graphs in a log are those of the folder.
    traces = [file for file in beside if is_trace(head_of(file))]
    return list(dict.fromkeys([*kept, *(traces or beside)]))


def repeats_stage(file: str) -> bool:
    """Whether a file in such a folder holds only what its stages hold: a script that runs a graph, or the log of dynamo."""
    folder = os.path.basename(os.path.dirname(os.path.abspath(file)))
    return folder in ("torchdynamo", "torchinductor") or _GRAPH.fullmatch(folder) is not None


def _run(folder: str, root: str) -> str:
    """The folder of the process, where the root holds those of several: ranks have one each."""
    parts = os.path.relpath(os.path.dirname(folder), root).split(os.sep)
    named = [part for part in parts if part not in (".", "..", ROOT, "torchinductor")]
    return "/".join(named) if _holds_several(root) else ""


def _holds_several(root: str) -> bool:
    """Whether a folder holds the runs of more than one process."""
    for at in (root, os.path.join(root, ROOT)):
        with suppress(OSError):
            if sum(name.startswith("run_") for name in os.listdir(at)) > 1:
                return True
    return False


def records_beside(root: str) -> Iterator[str]:
    """Logs and traces beside a folder of this kind, or beside the one that it is a part of."""
    at = os.path.abspath(root)
    for _ in range(6):
        above, name = os.path.split(at)
        if name == ROOT:
            yield from records_in(above)
            return
        at = above


def records_in(folder: str) -> Iterator[str]:
    """The logs and traces among the files of a folder."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    except OSError:
        return
    for name in names[:BESIDE]:
        path = os.path.join(folder, name)
        if os.path.splitext(name)[1] in RECORDS and is_record(head_of(path)):
            yield path
