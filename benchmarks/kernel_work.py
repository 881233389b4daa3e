"""Whether kernels compute values again: the operations of every kernel beside those of the nodes that it covers, over folders of dumps.

    make work CORPUS=FOLDER            or: python benchmarks/kernel_work.py FOLDER... [--jobs 2] [--keep out/work.jsonl] [--worst 30]

Each text is expanded, planned and lowered as ``irscope compile-and-run`` would, and nothing runs. The command fails where a kernel does
more than four times the operations of its nodes, but for the ``EXCEPTIONS`` of :mod:`irscope.lower.repeated`. Arrays beside a text
(``weights.npz``, ``constants.npz``, ``inputs.npz``, ``NAME.oracle.npz``, ``NAME.pt``) say what a TorchScript graph leaves open; values
that a text elides count as zeros. Results are kept, a line a file, by the contents of irscope and of the text: a run that was ended goes
on where it was.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import irscope
from irscope.api import load
from irscope.backends.model import primitive
from irscope.backends.opening import Bindings, needs_opening, opened
from irscope.expand import bind_constants
from irscope.expand.bind import elided_constants
from irscope.graph import Module, TensorType
from irscope.lower.inline import NoScalarMeaning
from irscope.lower.repeated import GroupWork, work_of
from irscope.source import UserError
from irscope.source.checkpoints import read_checkpoint

SUFFIXES = (".hlo", ".txt", ".relay")
SECONDS = 300
"""CPU time of one text."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="folders of dumps, or single dumps")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", type=Path, default=Path("out/work.jsonl"), help="where the results are kept")
    parser.add_argument("--worst", type=int, default=30, help="so many rows of the table")
    given = parser.parse_args()
    files = [file for folder in given.folders for file in dumps(folder)]
    rows = list(measured(files, given.keep, given.jobs))
    table(rows, given.worst)
    return 1 if any(row["error"] or any(k["repeated"] for k in row["kernels"]) for row in rows) else 0


def dumps(folder: Path) -> list[Path]:
    """The texts in a folder, however deep, or the one that is named."""
    return sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES) if folder.is_dir() else [folder]


def measured(files: list[Path], keep: Path, jobs: int) -> Iterator[dict[str, Any]]:
    """A row a file: what is kept already, then what is measured now."""
    code = fingerprint(sorted(Path(irscope.__file__).parent.rglob("*.py")))
    known = {}
    if keep.exists():
        for line in keep.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            known[row["key"]] = row
    keys = {file: fingerprint([file]) + code for file in files}
    yield from (known[keys[file]] for file in files if keys[file] in known)
    left = [file for file in files if keys[file] not in known]
    keep.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(jobs) as pool, keep.open("a", encoding="utf-8") as out:
        for number, row in enumerate(pool.map(measure, left)):
            row["key"] = keys[left[number]]
            out.write(json.dumps(row) + "\n")
            out.flush()
            if sys.stderr.isatty():
                print(f"\r{number + 1} of {len(left)}", end="", file=sys.stderr)
            yield row


def fingerprint(files: list[Path]) -> str:
    """A digest of what stands in some files."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


class TooLong(Exception):
    """A text took more than its time."""


def measure(file: Path) -> dict[str, Any]:
    """The row of one text: its kernels, and those that do more than they need."""
    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLong(f"more than {SECONDS} s of CPU time")

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    row: dict[str, Any] = {"file": str(file), "refused": "", "error": "", "kernels": []}
    try:
        row["kernels"] = [kernel(work) for work in work_of(primitive(module_of(file)))]
    except (UserError, NoScalarMeaning) as refusal:
        row["refused"] = str(refusal)
    except (TooLong, Exception) as fault:
        row["error"] = f"{type(fault).__name__}: {fault}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return row


def kernel(work: GroupWork) -> dict[str, Any]:
    """One kernel as plain data."""
    return {"name": work.kernel, "anchor": work.anchor, "template": work.template, "done": work.done, "needed": work.needed,
            "repeated": work.is_repeated}


def module_of(file: Path) -> Module:
    """The module of a text, its types bound. Raises UserError where the text has errors or leaves something open."""
    reading = load(file)
    if not reading.ok or not reading.modules:
        raise UserError("the text has errors")
    module = reading.module()
    if needs_opening(module):
        inputs, weights, constants = (arrays(file.parent / f"{name}.npz") for name in ("inputs", "weights", "constants"))
        checkpoint = file.with_suffix(".pt")
        weights |= read_checkpoint(str(checkpoint)) if checkpoint.exists() else {}
        if "frozen" in file.name:
            constants |= arrays(file.parent / "constants_frozen.npz")
        oracle = arrays(file.parent / f"{file.name.split('.')[0]}.oracle.npz")
        constants |= {name.removeprefix("const_"): a for name, a in oracle.items() if name.startswith("const_")}
        if "trace_graph" not in file.name:
            inputs |= {f"arg{n}": oracle[name] for n, name in enumerate(name for name in oracle if name.startswith("in_"))}
        module = opened(module, Bindings(inputs, weights, constants))
    empty = {node.name: np.zeros(node.type.dims(), node.type.dtype.numpy())
             for node in elided_constants(module) if isinstance(node.type, TensorType)}
    return bind_constants(module, empty) if empty else module


def arrays(file: Path) -> dict[str, Any]:
    """What a file of arrays holds; nothing where there is none."""
    if not file.exists():
        return {}
    with np.load(file) as held:
        return {name: held[name] for name in held.files}


def table(rows: list[dict[str, Any]], worst: int) -> None:
    """Print the kernels that do the most beyond what they need, those that fail first, and what was left out."""
    found = sorted(((k, row["file"]) for row in rows for k in row["kernels"]), key=lambda item: (-item[0]["repeated"], -times(item[0])))
    print("| times | operations | of the nodes | anchor | template | kernel | file |\n|---:|---:|---:|---|---|---|---|")
    for k, file in found[:worst]:
        print(f"| {times(k):,.1f} | {k['done']:,.0f} | {k['needed']:,.0f} | {k['anchor']} | {k['template']} | {k['name']} | {file} |")
    for row in rows:
        if row["error"]:
            print(f"{row['file']}: {row['error']}")
    refused = Counter(bool(row["refused"]) for row in rows)[True]
    repeated = sum(k["repeated"] for k, _ in found)
    print(f"\n{len(rows)} texts, {refused} of them refused, {len(found)} kernels, {repeated} of them do more than they need, "
          f"{sum(bool(row['error']) for row in rows)} failed")


def times(k: dict[str, Any]) -> float:
    """How often a kernel does each operation, on average."""
    return float(k["done"] / max(1.0, k["needed"]))


if __name__ == "__main__":
    sys.exit(main())
