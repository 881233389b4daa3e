"""Releases of torch whose C++ backend the policy follows: one row for each, with what its lowering does otherwise.

Thresholds, scores, tests and their order are the same in both (scheduler.py, choices.py, codegen/cpp.py, memory.py, config.py); so is what
they decide on the recorded graphs. How a release is added, and what was compared, is in docs/fusion/inductor.md.
"""
from __future__ import annotations

import re
from dataclasses import dataclass

from irscope.graph import Module
from irscope.ops.module_attributes import WrittenBy
from irscope.ops.sets import OpSet, torchscript

NONE = torchscript("")


@dataclass(frozen=True, slots=True)
class Release:
    """One release by name (``torch-2.15``).

    ``many_users``: a value that more operators than this read is realized from two operations below the threshold on (ir.py,
    ``realize_opusers_threshold``); 0: the release has no such rule. ``drops_identities``: ``x * 1``, ``x / 1``, ``x + 0`` and ``x - 0``
    with numbers of the text compute nothing (fx_passes/joint_graph.py, ``remove_no_ops``). ``fallbacks``: operators that only this
    release leaves to the library.
    """

    name: str
    many_users: int = 5
    drops_identities: bool = True
    fallbacks: OpSet = NONE


LATEST = Release("torch-2.15")
TORCH_2_13 = Release("torch-2.13", many_users=0, drops_identities=False, fallbacks=torchscript("special_log_ndtr"))
RELEASES: dict[str, Release] = {release.name: release for release in (LATEST, TORCH_2_13)}
"""By name, the newest first."""
_SHOWN = re.compile(r"^# torch version: (\d+(?:\.\d+)+)", re.MULTILINE)


def shown_release(module: Module) -> Release:
    """The release that a text shows (``.pt2`` and ``fx_graph_runnable.py`` do); the newest where it shows none."""
    return release_of(WrittenBy.of(module).torch_version or version_in(module.source.text))


def version_in(text: str) -> str:
    """The version in ``# torch version: 2.13.0+cpu``; empty if there is none."""
    found = _SHOWN.search(text)
    return found[1] if found is not None else ""


def release_of(version: str) -> Release:
    """The release of a version, or the nearest known one before it; the newest for an empty version, the oldest for older ones."""
    shown = _numbers(version)[:2]
    known = (release for release in RELEASES.values() if _numbers(release.name) <= shown)
    return next(known, TORCH_2_13) if shown else LATEST


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0]))
