"""The findings of the StableHLO reader: one code per kind of fault."""
from __future__ import annotations

from irscope.formats.faults import Fault
from irscope.source import Severity

SYNTAX = Fault("SHL001", "syntax", "The text does not follow the grammar of MLIR, or of this operation, at this place.")
TRUNCATED = Fault("SHL002", "truncated", "The text ends before a module, a function, a region or a string is closed.")
UNKNOWN_OPERATION = Fault("SHL003", "unknown-operation", "The dialect has no such operation. It is kept and shown as an opaque node.")
UNKNOWN_DIALECT = Fault("SHL004", "unknown-dialect",
                        "An operation of a dialect that irscope does not know. It is kept and shown as an opaque node.", Severity.WARNING,
                        refuses=False)
UNREADABLE_DIALECT = Fault("SHL005", "unreadable-dialect",
                           "An operation of an unknown dialect in a form of that dialect's own, whose grammar is unknown.")
UNDEFINED_VALUE = Fault("SHL006", "undefined-value", "An operand names no value that is visible here.")
DUPLICATE_NAME = Fault("SHL007", "duplicate-name", "Two visible values, two functions or two blocks have one name.")
DOMINANCE = Fault("SHL008", "dominance", "A value is used before the operation that defines it.")
RESULT_COUNT = Fault("SHL009", "result-count", "The names before = are more or fewer than the results of the operation.")
VALUE_TYPE = Fault("SHL010", "value-type", "A value is used with another type than it is defined with.")
OPERAND_COUNT = Fault("SHL011", "operand-count", "The number of operands and the number of their types differ.")
UNKNOWN_ALIAS = Fault("SHL012", "unknown-alias", "An alias of a type, an attribute or a location is never defined.")
TYPE_SYNTAX = Fault("SHL013", "type-syntax", "The text of a type is wrong: element type, dimensions or encoding.")
LITERAL = Fault("SHL014", "literal", "The value of a constant does not fit its type.")
ATTRIBUTE_VALUE = Fault("SHL015", "attribute-value", "The value of an attribute has the wrong form.")
MISSING_TERMINATOR = Fault("SHL017", "missing-terminator", "A block does not end with a return.")
LOSSY_PRINT = Fault("SHL018", "lossy-print", "The text was printed with an option that omits what is needed to read it back.")
LIMIT = Fault("SHL019", "limit", "The text goes beyond a limit (nesting, size) that protects memory and stack.")
TEXT_AROUND = Fault("SHL020", "text-around", "Text before, between or after modules is not MLIR. It is skipped.")
NO_MODULE = Fault("SHL021", "no-module", "No module and no function was found in the text.")

FAULTS: tuple[Fault, ...] = tuple(f for f in list(globals().values()) if isinstance(f, Fault))
