"""Trip counts of loops, where the text determines them."""
from __future__ import annotations

import re

from irscope.formats.torchscript import structure as torch
from irscope.formats.torchscript.attributes import Constant as TorchConstant
from irscope.graph import Graph, Module, Node, TensorType, Type
from irscope.ops import hlo
from irscope.ops.attributes import Compare, Constant, GetTupleElement, Parameter, Scan

_KNOWN = re.compile(r'"?known_trip_count"?\s*[:=]\s*\{\s*"?n"?\s*[:=]\s*"?(\d+)"?')
MOST_TRIPS = (1 << 63) - 1
"""The largest trip count that XLA's note can hold; a larger one in a text is no note."""
_PASS_THROUGH = hlo.named("copy bitcast convert reshape opt-barrier add-dependency")
_LEAVES = hlo.named("parameter constant")
_CALLS = hlo.named("fusion call")
_STEPS = {hlo.add: 1, hlo.subtract: -1}


def trip_count(module: Module, node: Node, noted: bool = True) -> int | None:
    """The number of trips of a ``while``, ``scan`` or counted loop, or None where only a run would show it.

    A compiler's own note (``known_trip_count``) is trusted; otherwise the usual counter is recognised: it begins at a constant,
    the condition compares it with a constant, the body adds a constant. Without ``noted`` the note is ignored: a text may claim
    any number.
    """
    if node.op is hlo.scan:
        return _scan_trips(node)
    if node.op is torch.LOOP:
        return _loop_trips(node)
    if node.op is not hlo.while_ or len(node.bodies) != 2:
        return None
    raw = module.raw(node).get("backend_config", "") if noted else ""
    said = _KNOWN.search(raw) if raw else None
    if said and len(said[1]) < 20 and int(said[1]) <= MOST_TRIPS:
        return int(said[1])
    condition, body = node.bodies
    if condition.root is None or body.root is None:
        return None
    test = _through(condition.root)
    if test.op is not hlo.compare or len(test.operands) != 2:
        return None
    direction = Compare.direction.given(test) or ""
    left, right = (_through(o) for o in test.operands)
    counter, limit = _counter(left), _integer(right)
    if counter is None or limit is None:
        counter, limit, direction = _counter(right), _integer(left), MIRRORED.get(direction, "")
    if counter is None or limit is None:
        return None
    start, step = _initial(node, counter), _step(body, counter)
    if start is None or step is None:
        return None
    trips = _count(start, limit, step[0], direction)
    return trips if trips is not None and all(_holds(step[1], value) for value in (start, limit, start + trips * step[0])) else None


def _holds(type: Type, value: int) -> bool:
    """Whether a type has a value and all integers between it and zero: a counter that wraps around, or stops at a float whose neighbours
    are further apart than its steps, may pass its test forever.
    """
    if not isinstance(type, TensorType) or not (type.dtype.is_integer or type.dtype.is_float):
        return False
    return abs(value) <= 1 << type.dtype.significand if type.dtype.is_float else type.dtype.lowest <= value <= type.dtype.highest


def _loop_trips(node: Node) -> int | None:
    """The trips of torch's counted loop: its operands are the number of trips, whether to begin, the carried and the captured values.

    Only where the body always continues; its parameters are the counter, and then the operands from the third on.
    """
    if len(node.operands) < 2 or not node.bodies or node.bodies[0].root is None:
        return None
    root = node.bodies[0].root
    again = root.operands[0] if root.op is hlo.tuple and root.operands else root
    place = Parameter.number.given(again) if again.op is hlo.parameter else None
    if place is not None and len(root.operands) <= place < len(node.operands) - 1:
        again = node.operands[place + 1]
    limit, begin, go_on = (TorchConstant.of(o).value if o.op is torch.CONSTANT else None for o in (*node.operands[:2], again))
    return limit if isinstance(limit, int) and 0 <= limit < 1 << 62 and begin == 1 and go_on == 1 else None


MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE", "EQ": "EQ"}
"""By the direction of a comparison, the direction of the equivalent comparison with swapped operands."""


def _count(start: int, limit: int, step: int, direction: str) -> int | None:
    """How often a counter that begins at ``start`` passes its test; None where it never fails, or overflows first."""
    way = limit - start
    holds = {"LT": way > 0, "LE": way >= 0, "GT": way < 0, "GE": way <= 0, "NE": way != 0, "EQ": way == 0}.get(direction)
    if holds is None:
        return None
    if not holds:
        return 0
    if step == 0:
        return None
    if direction == "EQ":
        return 1
    if direction in ("LT", "LE") and step > 0:
        return -(-way // step) if direction == "LT" else way // step + 1
    if direction in ("GT", "GE") and step < 0:
        return -(way // -step) if direction == "GT" else -way // -step + 1
    if direction == "NE" and way % step == 0 and way // step > 0:
        return way // step
    return None


def _scan_trips(node: Node) -> int | None:
    dimensions = Scan.dimensions.given(node)
    if not node.operands or dimensions is None or len(dimensions) != 1:
        return None
    shape = getattr(node.operands[0].type, "shape", ())
    size = shape[dimensions[0]] if 0 <= dimensions[0] < len(shape) else None
    return size if isinstance(size, int) else None


def _through(node: Node) -> Node:
    """The node that computes this value, past copies, and past a fusion or call with a single operation."""
    for _ in range(64):
        if node.op in _PASS_THROUGH and node.operands and _keeps_value(node.operands[0].type, node.type):
            node = node.operands[0]
        elif node.op in _CALLS and len(node.bodies) == 1 and node.bodies[0].root is not None:
            inner = node.bodies[0].root
            if not all(o.op in _LEAVES for o in inner.operands):
                return node
            arguments = [_argument(node, o) for o in inner.operands]
            return Node(inner.op, inner.name, inner.type, tuple(arguments), inner.attrs)
        else:
            return node
    return node


def _keeps_value(source: Type, target: Type) -> bool:
    """Whether a conversion keeps every value."""
    if not isinstance(source, TensorType) or not isinstance(target, TensorType):
        return True
    return target.dtype is source.dtype or target.dtype.holds(source.dtype)


def _argument(call: Node, inner: Node) -> Node:
    number = Parameter.number.given(inner) if inner.op is hlo.parameter else None
    return call.operands[number] if number is not None and number < len(call.operands) else inner


def _counter(node: Node) -> int | None:
    """The index of the loop value that ``node`` reads; -1 when the loop carries a single value instead of a tuple."""
    node = _through(node)
    if node.op is hlo.parameter:
        return -1
    if node.op is hlo.get_tuple_element and node.operands and _through(node.operands[0]).op is hlo.parameter:
        return GetTupleElement.index.given(node)
    return None


def _integer(node: Node) -> int | None:
    """The value of an integer constant, from its text, or from its array if irscope built the constant; None for any other node."""
    if node.op is not hlo.constant:
        return None
    literal = Constant.of(node).literal
    is_scalar = isinstance(literal.type, TensorType) and literal.type.shape == ()
    try:
        return int(literal.text if literal.text is not None else str(literal.value()) if is_scalar else "")
    except ValueError:
        return None


def _element(node: Node | None, index: int) -> Node | None:
    if node is None or index == -1:
        return node
    node = _through(node)
    return node.operands[index] if node.op is hlo.tuple and index < len(node.operands) else None


def _initial(loop: Node, counter: int) -> int | None:
    value = _element(loop.operands[0] if loop.operands else None, counter)
    return _integer(_through(value)) if value is not None else None


def _step(body: Graph, counter: int) -> tuple[int, Type] | None:
    """What a trip adds to the counter, and in which type."""
    value = _element(body.root, counter)
    if value is None:
        return None
    value = _through(value)
    sign = _STEPS.get(value.op)
    if sign is None or len(value.operands) != 2:
        return None
    left, right = (_through(o) for o in value.operands)
    if _counter(left) == counter and (amount := _integer(right)) is not None:
        return sign * amount, value.type
    if sign == 1 and _counter(right) == counter and (amount := _integer(left)) is not None:
        return amount, value.type
    return None
