"""Relay's structural operators: functions as values, calls, branches, references, data types."""

from __future__ import annotations

from irscope.graph import Effect, Kind, Op
from irscope.ops.registry import declare

FUNCTION = declare(
    Op("fn", "relay", "A function as a value; its graph is the body, its captures are the operands.", Kind.LEAF)
)
CALL = declare(
    Op("call", "relay", "Calls the function that is operand 0, or the body, with the other operands.", Kind.OPAQUE, work="control")
)
GLOBAL = declare(Op("global", "relay", "A function of the module as a value (``attrs['name']``).", Kind.LEAF))
IF = declare(Op("if", "relay", "One of two bodies, by the bool that is operand 0.", Kind.OPAQUE, work="control"))
MATCH = declare(
    Op("match", "relay", "The body of the first pattern that fits operand 0 (``attrs['patterns']``).", Kind.OPAQUE, work="control")
)
CONSTRUCTOR = declare(Op("constructor", "relay", "A value of an algebraic data type (``attrs['name']``).", Kind.TUPLE))
FIELD = declare(Op("field", "relay", "A field that a pattern binds (``attrs['path']``) of operand 0.", Kind.TUPLE))
REF = declare(Op("ref", "relay", "A new reference to operand 0.", Kind.OPAQUE, Effect.WRITES))
REF_READ = declare(Op("ref_read", "relay", "The value of a reference.", Kind.OPAQUE, Effect.READS))
REF_WRITE = declare(Op("ref_write", "relay", "A reference gets another value.", Kind.OPAQUE, Effect.WRITES))
OF_REFERENCES = {REF: 1, REF_READ: 1, REF_WRITE: 2}
"""The operators on references, with their numbers of operands."""
LOWERED = declare(Op("primfn", "relay", "A function in a lower-level form, kept as text.", Kind.OPAQUE, Effect.CONTROL))

STRUCTURAL = frozenset(("fn", "call", "global", "if", "match", "constructor", "field", "ref", "ref_read", "ref_write", "primfn"))
"""Names of operators that no text calls by name."""

INFIX = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal",
    "==": "equal", "!=": "not_equal",
}
PRECEDENCE = {"*": 12, "/": 12, "+": 10, "-": 10, "<": 8, "<=": 8, ">": 8, ">=": 8, "==": 7, "!=": 7}
