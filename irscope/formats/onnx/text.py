"""Texts of ONNX: none is read. A model is a binary file."""
from __future__ import annotations

from irscope.graph import Reading
from irscope.source import SourceText, UserError


def sniff(text: str) -> float:
    """0: a text is never a model."""
    return 0.0


def read(source: SourceText) -> Reading:
    """Raises UserError: prints of models leave out the weights, and are not read."""
    raise UserError(f"{source.name} is a text, not an ONNX model", "irscope reads the binary model: give model.onnx itself")
