"""Where an ONNX node comes from: the scope in its name or in the exporter's metadata, and the exporter's stack trace.

    /layers.0/attn/MatMul                                 the name that torch's older exporter gives: scope layers.0/attn
    pkg.torch.onnx.name_scopes ['', 'layers.0', 'add']    what the newer one writes: scope layers/0
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from irscope.formats.onnx.package import Proto
from irscope.graph import SourceLine
from irscope.source.data_text import python_literal

SCOPES, STACK, FX_NODE = "pkg.torch.onnx.name_scopes", "pkg.torch.onnx.stack_trace", "pkg.torch.onnx.fx_node"
"""The metadata of torch.onnx."""
FRAME = re.compile(r'File "([^"\n]+)", line (\d{1,9}), in (\S+)')
MAX_TEXT = 10_000
"""Longer metadata are not parsed."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The scope of a node, the lines of the user's program, innermost first, and the node of the exported program as FX prints it."""

    scope: str
    stack: tuple[SourceLine, ...] = ()
    fx_node: str = ""


def origin_of(proto: Proto) -> Origin:
    """What a NodeProto says of its origin."""
    metadata = {str(entry.key): str(entry.value) for entry in proto.metadata_props if len(entry.value) < MAX_TEXT}
    frames = [SourceLine(file, int(line), function=name) for file, line, name in FRAME.findall(metadata.get(STACK, ""))]
    return Origin(_scope(metadata.get(SCOPES, "")) or _path(str(proto.name)), tuple(reversed(frames)), metadata.get(FX_NODE, ""))


def _scope(text: str) -> str:
    """The innermost module in a list of scopes, whose last entry is the operation."""
    try:
        scopes = python_literal(text) if text else []
    except ValueError:
        return ""
    named = [s for s in scopes[:-1] if isinstance(s, str) and s] if isinstance(scopes, list) else []
    return named[-1].replace(".", "/") if named else ""


def _path(name: str) -> str:
    """The scope in a name that is a path."""
    return name.strip("/").rpartition("/")[0] if name.startswith("/") else ""


class OnnxProvenance:
    """The origins of nodes, by their place in the printed model."""

    def __init__(self, origins: Mapping[int, Origin]) -> None:
        self._origins = origins

    def scope(self, loc: int) -> str:
        """The module that the node belongs to."""
        found = self._origins.get(loc)
        return found.scope if found is not None else ""

    def call_stack(self, loc: int) -> tuple[SourceLine, ...]:
        """Lines of the user's program."""
        found = self._origins.get(loc)
        return found.stack if found is not None else ()

    def raw(self, loc: int) -> Mapping[str, str]:
        """The node of the exported program that torch's exporter converted: ``%gelu : [num_users=1] = call_function[...](...)``."""
        found = self._origins.get(loc)
        return {"fx_node": found.fx_node} if found is not None and found.fx_node else {}
