"""Modules and functions of an operation tree."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from irscope.formats.faults import Faults, Span
from irscope.formats.stablehlo.attributes import Attribute
from irscope.formats.stablehlo.faults import DUPLICATE_NAME
from irscope.formats.stablehlo.operations import UNREADABLE, Function, Operation, ParsedModule, operations_of
from irscope.formats.stablehlo.parser import Parser
from irscope.formats.stablehlo.types import results_of
from irscope.graph import FunctionType, Node
from irscope.source import Note


def modules_of(found: Sequence[Operation | Node], faults: Faults, parser: Parser) -> list[ParsedModule]:
    """The modules among operations; those outside of any are one module without a name."""
    modules: list[ParsedModule] = []
    operations = operations_of(found)
    loose = [operation for operation in operations if operation.name not in ("builtin.module", UNREADABLE)]
    for operation in operations:
        if operation.name == "builtin.module":
            attributes = operation.attributes
            name = attributes.get("sym_name")
            inner = operations_of(operation.regions[0].body.operations) if operation.regions and operation.regions[0].blocks else []
            nested = [each for each in inner if each.name == "builtin.module"]
            functions = _functions(inner, faults)
            if functions or not nested:
                kept = {key: value for key, value in attributes.items() if key != "sym_name"}
                named = name if isinstance(name, str) else ""
                modules.append(ParsedModule(named, kept, inner, functions, operation.begin, not parser.is_cut, parser.aliases))
            modules += modules_of(nested, faults, parser)
    functions = _functions(loose, faults)
    if functions or (loose and not modules):
        modules.append(ParsedModule("", {}, loose, functions, loose[0].begin, not parser.is_cut, parser.aliases))
    return modules


def _functions(operations: list[Operation], faults: Faults) -> dict[str, Function]:
    """The functions among operations, by name."""
    functions: dict[str, Function] = {}
    for operation in operations:
        function = function_of(operation) if operation.name == "func.func" else None
        if function is None:
            continue
        if function.name in functions:
            first = functions[function.name].operation.at
            faults.add(DUPLICATE_NAME, f"redefinition of symbol named '{function.name}'", Span(operation.at, len(operation.name)), "",
                       (Note("it is defined first here", first),))
            continue
        functions[function.name] = function
    return functions


def function_of(operation: Operation) -> Function | None:
    """The function that an operation defines; None where it has no name or type."""
    attributes = operation.attributes
    name, type = attributes.get("sym_name"), attributes.get("function_type")
    if not isinstance(name, str) or not isinstance(type, FunctionType):
        return None
    visibility = attributes.get("sym_visibility")
    body = operation.regions[0].body if operation.regions and operation.regions[0].blocks else None
    return Function(name, visibility if isinstance(visibility, str) else "", body.arguments if body is not None else (), results_of(type),
                    body, operation, _dictionaries(attributes.get("arg_attrs")))


def _dictionaries(value: Attribute | None) -> tuple[Mapping[str, Attribute], ...]:
    return tuple(each if isinstance(each, Mapping) else {} for each in value) if isinstance(value, tuple) else ()
