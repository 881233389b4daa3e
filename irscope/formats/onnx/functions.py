"""The functions of a model, callees before callers."""
from __future__ import annotations

from collections.abc import Iterator, Mapping

from irscope.formats.onnx.findings import MALFORMED, report
from irscope.formats.onnx.package import Proto
from irscope.graph import Reading

Key = tuple[str, str, str]
"""Domain, name and overload of a function."""


def key_of(proto: Proto) -> Key:
    """The key of a function."""
    return domain_of(proto), str(proto.name), str(proto.overload)


def called(node: Proto) -> Key:
    """The key of the function that a node calls, where it calls one."""
    return domain_of(node), str(node.op_type), str(node.overload)


def domain_of(proto: Proto) -> str:
    """The domain of a node, of a function or of a version of operators. The standard's has two names; here it is empty."""
    return "" if proto.domain == "ai.onnx" else str(proto.domain)


def name_of(domain: str, name: str, overload: str = "") -> str:
    """``Add`` of the standard, ``com.microsoft.Gelu`` of other domains."""
    full = name if not domain else f"{domain}.{name}"
    return f"{full}:{overload}" if overload else full


def calls_in_order(functions: Mapping[Key, Proto], reading: Reading) -> list[Key]:
    """The functions, callees first; reports those that call themselves, and leaves them out of the order as callers."""
    order: list[Key] = []
    state: dict[Key, int] = {}
    for start in functions:
        if start in state:
            continue
        state[start] = 1
        stack = [(start, _callees(functions, start))]
        while stack:
            key, callees = stack[-1]
            callee = next(callees, None)
            if callee is None:
                stack.pop()
                state[key] = 2
                order.append(key)
            elif state.get(callee) == 1:
                report(reading, MALFORMED, f"the function {name_of(*callee)} calls itself: functions of a model must not form a cycle")
            elif callee not in state:
                state[callee] = 1
                stack.append((callee, _callees(functions, callee)))
    return order


def _callees(functions: Mapping[Key, Proto], key: Key) -> Iterator[Key]:
    """The functions that a function calls, in its bodies too."""
    stack = [functions[key].node]
    while stack:
        for node in stack.pop():
            if called(node) in functions:
                yield called(node)
            for attribute in node.attribute:
                stack.extend(graph.node for graph in ([attribute.g] if attribute.HasField("g") else list(attribute.graphs)))
