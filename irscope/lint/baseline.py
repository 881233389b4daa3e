"""The baseline: known and accepted findings, identified by their subject instead of their line."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from irscope.source import Finding, UserError
from irscope.source.data_text import finite_number, json_value, strict_json, whole_number
from irscope.source.files import read_plain_text
from irscope.source.reads import note_read
from irscope.source.writing import writing

VERSION = 1
_NAME = re.compile(r"%([\w.\-]+)")


def fingerprint(finding: Finding) -> str:
    """A key that is stable when a model is exported again: the rule, the operator and its type, and the message with names replaced.

    Names come from the compiler or a counter, and change when a line is added before. Equal findings on equal operators, as in the
    layers of a model, share a fingerprint; a baseline counts them.
    """
    known = {step.node: f"{step.op} {step.type}" for step in finding.path}
    at = known.get(finding.node) or _plain(finding.node)
    message = _NAME.sub(lambda name: "%" + (known.get(name[1].rstrip(".")) or _plain(name[1])), finding.message)
    return hashlib.sha256("\0".join((finding.code, at, message)).encode()).hexdigest()[:16]


def _plain(name: str) -> str:
    """A name without the numeric suffix that compilers append; a plain number is not a name."""
    return re.sub(r"(?:\.\d+)+$", "", name) if not name.isdigit() else ""


def write_baseline(path: str, findings: Iterable[Finding], fusion: dict[str, dict[str, object]] | None = None,
                   inputs: Collection[str] = ()) -> None:
    """Store the findings as accepted, each with its message for the reader of the file; ``fusion``: what the policy made of each file.

    A baseline is replaced, also one that was read. Raises UserError where the file is not a baseline, or is one of ``inputs``.
    """
    before = os.path.isfile(path) and os.path.getsize(path) > 0
    if before and not _is_baseline(path):
        raise UserError(f"{path} is no baseline of irscope; it is not overwritten", "give another name, or remove the file")
    counted = Counter((fingerprint(f), f.code, f.message) for f in findings)
    rows = [{"fingerprint": print_, "code": code, "message": message, "count": n} for (print_, code, message), n in sorted(counted.items())]
    document = {"version": VERSION, "findings": rows, **({"fusion": fusion} if fusion else {})}
    with writing(path, inputs, again=before) as stream:
        stream.write((strict_json(document, indent=1) + "\n").encode())
    note_read(path)  # the report of this run does not replace it


def read_baseline(path: str) -> Counter[str]:
    """How often each fingerprint is accepted. Raises UserError for a file that is not a baseline."""
    return read_stored(path)[0]


def read_fusion(path: str) -> dict[str, dict[str, Any]]:
    """The fusion figures of each file when the baseline was written, by the file's name; empty if they were not stored."""
    return fusion_in(read_stored(path)[1], path)


def read_stored(path: str) -> tuple[Counter[str], dict[str, Any]]:
    """How often each fingerprint is accepted, and the whole document, from one read: a pipe gives its content once."""
    help = f"irscope lint --write-baseline {path} makes one"
    try:
        data = json_value(read_plain_text(path))
        accepted: Counter[str] = Counter()
        for row in data["findings"]:  # several rows may have one fingerprint: their messages differ in numbers behind names
            accepted[row["fingerprint"]] += whole_number(row["count"])
    except UserError as error:
        raise UserError(error.message, help) from None
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path} is no baseline of irscope", help) from None
    return accepted, data


def _is_baseline(path: str) -> bool:
    """Whether a file is a baseline of irscope: reports of other tools have ``findings`` too."""
    try:
        return "version" in read_stored(path)[1]
    except UserError:
        return False


def fusion_in(document: Mapping[str, Any], path: str) -> dict[str, dict[str, Any]]:
    """The fusion figures of a document that :func:`read_stored` read from ``path``. Raises UserError where they are damaged."""
    figures: dict[str, dict[str, Any]] = document.get("fusion", {})
    try:
        for row in figures.values():
            whole_number(row["kernels"]), finite_number(row["traffic"]), str(row["policy"])
            for count in row["apart"].values():
                whole_number(count)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise UserError(f"{path}: what it holds of fusion is damaged", "write it again with --write-baseline and --track-fusion") from None
    return figures


def unknown_to(left: Counter[str], findings: Iterable[Finding]) -> list[Finding]:
    """The findings that the baseline does not accept; accepted ones are subtracted from ``left``, so that each entry counts once."""
    new = []
    for finding in findings:
        print_ = fingerprint(finding)
        if left[print_] > 0:
            left[print_] -= 1
        else:
            new.append(finding)
    return new
