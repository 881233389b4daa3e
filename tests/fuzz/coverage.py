"""Which lines of irscope's functions an input was the first to reach.

Where Python has ``sys.monitoring`` (3.12), a line calls back once and is switched off, so that coverage costs next to nothing
(docs/why/own-fuzzer.md has the figures). Python 3.11 traces calls and lines, which takes four times as long.
"""
from __future__ import annotations

import sys
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[2] / "irscope"
_WITHIN = str(ROOT) + "/"
MONITORING: Any = getattr(sys, "monitoring", None)
TOOL = 3
"""The number under which ``sys.monitoring`` knows us: one that no debugger, profiler or optimiser takes."""


class Coverage:
    """The lines that ran since the last :meth:`take`, among those that had not run before in this process."""

    def __init__(self) -> None:
        self._new: set[tuple[str, int]] = set()
        self._seen: set[tuple[CodeType, int]] = set()

    def start(self) -> None:
        """Begin to watch."""
        if MONITORING is None:
            sys.settrace(self._call)
            return
        MONITORING.use_tool_id(TOOL, "irscope-fuzz")
        MONITORING.register_callback(TOOL, MONITORING.events.LINE, self._line)
        MONITORING.set_events(TOOL, MONITORING.events.LINE)

    def stop(self) -> None:
        """Watch no longer."""
        if MONITORING is None:
            sys.settrace(None)
        else:
            MONITORING.set_events(TOOL, 0)
            MONITORING.free_tool_id(TOOL)

    def again(self) -> None:
        """Every line counts as new once more."""
        self._seen.clear()
        if MONITORING is not None:
            MONITORING.restart_events()

    def take(self) -> set[tuple[str, int]]:
        """File, relative to irscope's folder, and line of what is new."""
        new, self._new = self._new, set()
        return new

    def _line(self, code: CodeType, line: int) -> Any:
        if code.co_filename.startswith(_WITHIN) and code.co_flags & CO_OPTIMIZED:  # a module runs once, for whichever input imports it
            self._new.add((code.co_filename[len(_WITHIN):], line))
        return MONITORING.DISABLE if MONITORING is not None else None

    def _call(self, frame: FrameType, event: str, arg: object) -> Any:
        return self._trace if frame.f_code.co_filename.startswith(_WITHIN) else None

    def _trace(self, frame: FrameType, event: str, arg: object) -> Any:
        place = frame.f_code, frame.f_lineno
        if event == "line" and place not in self._seen:
            self._seen.add(place)
            self._line(*place)
        return self._trace


def unit(file: str) -> str:
    """What a file belongs to, which is what a changed file spoils the counts of: its folder, or the file itself at the top, in ``api`` and
    ``cli``, which have files for each command, and in the rooms of a format, of which other formats use a file or two."""
    folder, _, name = file.rpartition("/")
    return file if folder in ("api", "cli") or folder.startswith(("formats/", "expand/")) else folder or name.removesuffix(".py")
