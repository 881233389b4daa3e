"""Where the nodes of an archive come from: its stack traces, and the path of modules that were called.

    "stack_trace": "File \\"/src/model.py\\", line 11, in forward\\n    return self.l(x)"
    "nn_module_stack": "L__self__,,model.Net;L__self___l,l,torch.nn.modules.linear.Linear"
"""
from __future__ import annotations

import re
from collections.abc import Mapping

from irscope.formats.export.records import Record
from irscope.graph import SourceLine

FRAME = re.compile(r'^ *File "(?P<file>[^"\n]*)", line (?P<line>\d{1,9})(?:, in (?P<function>[^\n]*))?', re.MULTILINE)


def call_stack(metadata: Record) -> tuple[SourceLine, ...]:
    """The lines of the user's program, innermost first."""
    text = metadata.values.get("stack_trace")
    if not isinstance(text, str):
        return ()
    return tuple(SourceLine(f["file"], int(f["line"]), 0, f["function"] or "") for f in FRAME.finditer(text))[::-1]


def module_path(metadata: Record) -> str:
    """The path of the innermost module, its parts separated by slashes."""
    text = metadata.values.get("nn_module_stack")
    if not isinstance(text, str):
        return ""
    fields = text.rpartition(";")[2].split(",")
    return fields[1].replace(".", "/") if len(fields) > 2 and "hook" not in fields[1] else ""


class ArchiveProvenance:
    """Looks up the metadata of the node at a place."""

    def __init__(self, metadata: Mapping[int, Record]) -> None:
        self._metadata = metadata

    def scope(self, loc: int) -> str:
        """The path of the module that made the node: ``encoder/layer/0``."""
        found = self._metadata.get(loc)
        return module_path(found) if found is not None else ""

    def call_stack(self, loc: int) -> tuple[SourceLine, ...]:
        """The lines of the user's program."""
        found = self._metadata.get(loc)
        return call_stack(found) if found is not None else ()

    def raw(self, loc: int) -> Mapping[str, str]:
        """What the archive says beside: the function of torch that was called, tags of the user's own."""
        found = self._metadata.get(loc)
        values = found.values if found is not None else {}
        return {key: value for key in ("torch_fn", "custom") if isinstance(value := values.get(key), str)}
