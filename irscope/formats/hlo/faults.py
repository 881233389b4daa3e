"""The findings of the HLO reader: one code per kind of fault."""
from __future__ import annotations

from irscope.formats.faults import MAX_FINDINGS, Fault, Faults, Refused, Span
from irscope.source import Severity

__all__ = ["FAULTS", "MAX_FINDINGS", "Fault", "Faults", "Refused", "Span"]

SYNTAX = Fault("HLO001", "syntax", "The text does not follow the grammar of HLO at this place.")
TRUNCATED = Fault("HLO002", "truncated", "The text ends before a module, a computation, a comment or a string is closed.")
UNKNOWN_OPCODE = Fault("HLO003", "unknown-opcode", "HLO has no such opcode. The instruction is kept and shown as an opaque node.")
UNDEFINED_OPERAND = Fault("HLO004", "undefined-operand", "An operand names no earlier instruction of its computation.")
DUPLICATE_NAME = Fault("HLO005", "duplicate-name", "Two instructions of a computation, or two computations of a module, have one name.")
# XLA refuses it, but users cut single computations out of dumps, and the rest of such a text is readable.
MISSING_COMPUTATION = Fault("HLO006", "missing-computation", "A called computation is not defined in the text, or calls its caller.",
                            refuses=False)
UNKNOWN_ATTRIBUTE = Fault("HLO007", "unknown-attribute",
                          "An attribute that irscope does not know, perhaps of a newer XLA. It is kept as text.", Severity.WARNING,
                          refuses=False)
MISPLACED_ATTRIBUTE = Fault("HLO008", "misplaced-attribute", "An attribute that other opcodes have, but not this one.")
MISSING_ATTRIBUTE = Fault("HLO009", "missing-attribute", "An attribute that the opcode requires is missing.", spoils=True)
REPEATED_ATTRIBUTE = Fault("HLO010", "repeated-attribute", "An attribute is given twice.")
ATTRIBUTE_VALUE = Fault("HLO011", "attribute-value", "The value of an attribute has the wrong form.", spoils=True)
OPERAND_COUNT = Fault("HLO012", "operand-count", "The opcode takes a different number of operands.", spoils=True)
OPERAND_TYPE = Fault(
    "HLO013",
    "operand-type",
    "The type written before an operand is not the type of the instruction it names, or no type that the opcode can take there.",
)
RESULT_TYPE = Fault("HLO014", "result-type", "The type of the result cannot be that of this instruction or computation.")
MISSING_TYPE = Fault("HLO015", "missing-type", "The type of the result is omitted, and cannot be inferred from the operands.")
TYPE_SYNTAX = Fault("HLO016", "type-syntax", "The text of a type is wrong: element type, dimensions or layout.")
LITERAL = Fault("HLO017", "literal", "The value of a constant does not fit its type.")
ENTRY_OR_ROOT = Fault("HLO018", "entry-or-root", "More than one ENTRY in a module, or more than one ROOT in a computation.")
PARAMETER_NUMBER = Fault("HLO019", "parameter-number", "The numbers of a computation's parameters must be 0, 1, 2, ... each once.")
ASYNC_CHAIN = Fault("HLO020", "async-chain", "async-start, async-update and async-done do not fit together.")
ILLEGAL_NAME = Fault("HLO021", "illegal-name", "A name that HLO reserves or does not allow.")
LOSSY_PRINT = Fault("HLO022", "lossy-print", "The text was printed with an option that omits what is needed to read it back.")
LIMIT = Fault("HLO023", "limit", "The text goes beyond a limit (nesting, size) that protects memory and stack.")
TEXT_AROUND = Fault("HLO024", "text-around", "Text before, between or after modules is not HLO. It is skipped.",
                    Severity.INFO, refuses=False)
NO_MODULE = Fault("HLO025", "no-module", "No HLO module was found in the text.")
MODULE_ATTRIBUTE = Fault("HLO026", "module-attribute", "An attribute of the module, or its stack-frame tables, has the wrong form.")
SHORT_LITERAL = Fault("HLO027", "short-literal",
                      "A constant of several elements is written with one number: XLA makes it the first element, and the others zero.",
                      Severity.WARNING, refuses=False)
STRAY_OPERAND = Fault("HLO028", "stray-operand",
                      "A type without a name, or nothing, is in the place of an operand. XLA's parser drops it.", Severity.WARNING,
                      refuses=False)
# What XLA's parser lets through and its verifier does not:
LAYOUT = Fault("HLO029", "layout", "A layout must list each dimension once.", refuses=False)
PROTO = Fault("HLO031", "proto", "An HLO proto is cut off, or holds data that does not fit together, such as a constant of another size.")
DEVICES = Fault("HLO030", "devices", "Replica groups or a sharding do not fit the number of devices they are made of.", refuses=False)


FAULTS: tuple[Fault, ...] = tuple(f for f in list(globals().values()) if isinstance(f, Fault))
