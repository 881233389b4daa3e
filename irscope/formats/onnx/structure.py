"""ONNX's structural nodes: control flow with bodies, calls of functions, inputs that a node leaves out."""
from __future__ import annotations

from irscope.graph import Effect, Op
from irscope.ops.registry import declare


def _structural(name: str, doc: str, work: str = "control", effect: Effect = Effect.PURE) -> Op:
    return declare(Op(name, "onnx", doc, effect=effect, work=work))


IF = _structural("If", "One of two bodies, by a bool.")
LOOP = _structural("Loop", "A body, trip by trip: operands are the largest number of trips, whether to begin, and what is carried.")
SCAN = _structural("Scan", "A body over the slices of tensors, with a state.")
SEQUENCE_MAP = _structural("SequenceMap", "A body over the elements of sequences.")
ABSENT = _structural("absent", "An optional input that a node leaves out.", "free")
TEXT = _structural("text", "A constant of strings.", "constant")
FUNCTION = frozenset(("function",))
"""The traits of calls of the model's own functions."""
