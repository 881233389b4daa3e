"""The operators: one declaration each, and the registry."""
from irscope.ops.faults import TypeFault
from irscope.ops.registry import all_ops, declare, get, lookup

__all__ = ["TypeFault", "all_ops", "declare", "get", "lookup"]
