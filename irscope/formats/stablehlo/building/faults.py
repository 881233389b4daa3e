"""The findings of building a graph from an operation tree."""
from __future__ import annotations

from irscope.formats.faults import Fault
from irscope.source import Severity

OPERATION_TYPE = Fault("SHL030", "operation-type", "The operands, attributes or result types of an operation do not fit each other.",
                       spoils=True)
RETURN_TYPE = Fault("SHL031", "return-type", "A function or a region returns other types than it must.")
UNKNOWN_CALLEE = Fault("SHL032", "unknown-callee", "A called function is not defined in the module.", spoils=True)
RECURSION = Fault("SHL033", "recursion", "A function calls itself, directly or not. XLA compiles no recursion.", Severity.ERROR,
                  refuses=False, spoils=True)
UNSUPPORTED = Fault("SHL034", "unsupported", "A form of an operation that HLO does not have. It is kept and shown as an opaque node.",
                    Severity.WARNING, refuses=False, spoils=True)

FAULTS: tuple[Fault, ...] = tuple(f for f in list(globals().values()) if isinstance(f, Fault))
