"""Where a node comes from in the user's own program."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the user's program. HLO stack frames, TorchScript comments and Relay spans all become this."""

    file: str
    line: int
    column: int = 0
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")


class Provenance(Protocol):
    """Looks up ``node.loc`` in the text, on demand. Each format implements it."""

    def scope(self, loc: int) -> str:
        """The user's name for the place: HLO ``op_name``, a module path; empty when the text has none."""

    def call_stack(self, loc: int) -> tuple[SourceLine, ...]:
        """Lines of the user's program, innermost first; empty when the text has none."""

    def raw(self, loc: int) -> Mapping[str, str]:
        """Attributes that were kept as text (HLO: metadata, backend_config, sharding, frontend_attributes...)."""


class NoProvenance:
    """For graphs that come from no text."""

    def scope(self, loc: int) -> str:
        return ""

    def call_stack(self, loc: int) -> tuple[SourceLine, ...]:
        return ()

    def raw(self, loc: int) -> Mapping[str, str]:
        return {}
