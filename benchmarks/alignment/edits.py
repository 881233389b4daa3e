"""Known edits: each changes a draft at a place that a seed draws, and returns how the report should name it."""
from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.alignment.drafts import Draft, Step
from irscope.graph import DTYPES, Graph, TensorType
from irscope.ops import get, hlo

UNARY = "negate tanh exponential abs sqrt logistic cosine sine log".split()
BINARY = "add multiply maximum minimum subtract divide".split()
MOST_STEPS = 400
"""Steps of a layer that is added or removed, at most."""


@dataclass(eq=False)
class Edit:
    """``kind``: what a report should say; ``before`` and ``after`` the steps that it is about."""

    name: str
    kind: str
    after: list[Step]


Edits = Callable[[Draft, random.Random], Edit | None]
"""An edit returns None for a draft that has no place for it."""


def _is_tensor(step: Step) -> bool:
    return isinstance(step.type, TensorType)


def _pick(draw: random.Random, steps: list[Step]) -> Step | None:
    return draw.choice(steps) if steps else None


def _insert(draft: Draft, new: Step, after: Step) -> None:
    draft.steps.insert(draft.steps.index(after) + 1, new)


def attribute(draft: Draft, draw: random.Random) -> Edit | None:
    """An attribute of a node has another value."""
    able = [s for s in draft.steps if s.number < 0 and s.op is not hlo.constant and any(_other(v) is not None for v in s.attrs.values())
            and s.op is not hlo.get_tuple_element]
    step = _pick(draw, able)
    if step is None:
        return None
    name = draw.choice([k for k, v in step.attrs.items() if _other(v) is not None])
    step.attrs = {**step.attrs, name: _other(step.attrs[name])}
    return Edit("attribute", "changed", [step])


def _other(value: object) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, tuple) and value and all(type(v) is int for v in value):
        return (*value[:-1], value[-1] + 1)
    if value in ("EQ", "NE", "LT", "GT", "LE", "GE"):
        return "NE" if value == "EQ" else "EQ"
    return None


def operator(draft: Draft, draw: random.Random) -> Edit | None:
    """A node has another operator of as many operands."""
    able = [s for s in draft.steps if s.op.name in UNARY or s.op.name in BINARY]
    step = _pick(draw, able)
    if step is None:
        return None
    family = UNARY if step.op.name in UNARY else BINARY
    step.op = get(draw.choice([name for name in family if name != step.op.name]))
    return Edit("operator", "changed", [step])


def insert(draft: Draft, draw: random.Random) -> Edit | None:
    """A node between a node and all its users."""
    step = _pick(draw, [s for s in draft.steps if _is_tensor(s) and s is not draft.root])
    if step is None:
        return None
    new = Step(get(draw.choice(UNARY)), step.type, [step], {})
    _insert(draft, new, step)
    draft.replace(step, new, frozenset((new,)))
    return Edit("insert", "added", [new])


def remove(draft: Draft, draw: random.Random) -> Edit | None:
    """A node whose users read its first operand of the same type instead."""
    able = [s for s in draft.steps if s.operands and str(s.operands[0].type) == str(s.type) and s.number < 0 and _is_tensor(s)]
    step = _pick(draw, able)
    if step is None:
        return None
    draft.replace(step, step.operands[0])
    draft.steps.remove(step)
    return Edit("remove", "removed", [])


def swap(draft: Draft, draw: random.Random) -> Edit | None:
    """Two different operands of one type change places."""
    able = [s for s in draft.steps if len(s.operands) == 2 and s.operands[0] is not s.operands[1]
            and str(s.operands[0].type) == str(s.operands[1].type)]
    step = _pick(draw, able)
    if step is None:
        return None
    step.operands.reverse()
    return Edit("swap", "changed", [step])


def constant(draft: Draft, draw: random.Random) -> Edit | None:
    """A constant has another value."""
    from irscope.ops.attrs import Literal

    step = _pick(draw, [s for s in draft.steps if s.op is hlo.constant and isinstance(s.type, TensorType) and not s.type.shape
                        and s.type.dtype.kind in ("float", "int")])
    if step is None or not isinstance(step.type, TensorType):
        return None
    value = float(draw.randrange(3, 90)) if step.type.dtype.kind == "float" else draw.randrange(3, 90)
    import numpy as np

    step.attrs = {**step.attrs, "literal": Literal.of(np.asarray(value, step.type.dtype.numpy()), step.type)}
    return Edit("constant", "changed", [step])


def fused(draft: Draft, draw: random.Random) -> Edit | None:
    """A node and its producer move into a fusion."""
    users = draft.users()
    able = [(s, o) for s in draft.steps for o in s.operands if _is_tensor(s) and _is_tensor(o) and o.number < 0 and s.number < 0
            and len(users[o]) == 1 and not s.bodies and not o.bodies and o is not draft.root and s.op.name in UNARY + BINARY]
    if not able:
        return None
    consumer, producer = draw.choice(able)
    outside = list(dict.fromkeys([*producer.operands, *(o for o in consumer.operands if o is not producer)]))
    body = Draft(Graph("fused"))
    inside = {o: Step(hlo.parameter, o.type, [], {"number": i}, number=i) for i, o in enumerate(outside)}
    inner = Step(producer.op, producer.type, [inside[o] for o in producer.operands], producer.attrs, (), producer.origins)
    inside[producer] = inner
    outer = Step(consumer.op, consumer.type, [inside[o] for o in consumer.operands], consumer.attrs, (), consumer.origins)
    body.steps, body.root = [*inside.values(), outer], outer
    call = Step(hlo.fusion, consumer.type, outside, {"kind": "kLoop"}, (body.graph,))
    draft.steps[draft.steps.index(consumer)] = call
    draft.steps.remove(producer)
    draft.replace(consumer, call)
    draft.bodies.append(body)
    return Edit("fused", "moved", [inner, outer])


def renamed(draft: Draft, draw: random.Random) -> Edit | None:
    """Nothing but names and the order of independent lines."""
    return Edit("renamed", "", [])


def parameter(draft: Draft, draw: random.Random) -> Edit | None:
    """A new first parameter, of which a part of the graph reads: all others have other numbers."""
    step = _pick(draw, [s for s in draft.steps if s.number < 0 and _is_tensor(s) and s is not draft.root and s.op is not hlo.constant])
    if step is None:
        return None
    for other in draft.steps:
        if other.number >= 0:
            other.number += 1
            other.attrs = {**other.attrs, "number": other.number}
    first = Step(hlo.parameter, step.type, [], {"number": 0}, number=0)
    new = Step(hlo.add, step.type, [step, first], {})
    _insert(draft, new, step)
    draft.replace(step, new, frozenset((new,)))
    draft.steps.insert(0, first)
    return Edit("parameter", "added", [first, new])


def _chains(draft: Draft) -> list[tuple[Step, Step, list[Step]]]:
    """Pairs of nodes of one type, with the nodes through which the value of the first goes to the second, and nowhere else."""
    users, place = draft.users(), {s: i for i, s in enumerate(draft.steps)}
    found = []
    by_type: dict[str, list[Step]] = {}
    for step in draft.steps:
        if isinstance(step.type, TensorType) and step.type.shape and step.number < 0 and step.op is not hlo.constant:
            by_type.setdefault(str(step.type), []).append(step)
    for same in by_type.values():
        for i, first in enumerate(same):
            for last in same[i + 1:i + 12]:
                low, high = place[first], place[last]
                if not 3 <= high - low <= MOST_STEPS:
                    continue
                inner = _between(first, last, draft.steps[low + 1:high + 1], users)
                if inner and len(inner) >= 3:
                    found.append((first, last, inner))
        if len(found) > 200:
            break
    return found


def _between(first: Step, last: Step, region: list[Step], users: dict[Step, list[Step]]) -> list[Step]:
    """The nodes that need the first and that the last needs; empty where a value of them is used elsewhere."""
    needs = {first}
    for step in region:
        if any(o in needs for o in step.operands):
            needs.add(step)
    if last not in needs:
        return []
    wanted = {last}
    for step in reversed(region):
        if step in wanted:
            wanted.update(o for o in step.operands if o in needs and o is not first)
    inner = [step for step in region if step in wanted]
    closed = all(user in wanted for step in inner if step is not last for user in users[step])
    return inner if closed and not any(step.bodies and step.op is not hlo.reduce for step in inner) else []


def layer_removed(draft: Draft, draw: random.Random) -> Edit | None:
    """Users of the last node of a stretch read what goes into it; its parameters stay."""
    chains = _chains(draft)
    if not chains:
        return None
    first, last, inner = draw.choice(chains)
    draft.replace(last, first, frozenset(inner))
    draft.steps = [s for s in draft.steps if s not in inner]
    return Edit("layer_removed", "removed", [])


def layer_added(draft: Draft, draw: random.Random) -> Edit | None:
    """A stretch is there twice, one after the other, with the same parameters. Either may be paired with the original."""
    chains = _chains(draft)
    if not chains:
        return None
    first, last, inner = draw.choice(chains)
    copies: dict[Step, Step] = {first: last}
    for step in inner:
        copies[step] = replace(step, operands=[copies.get(o, o) for o in step.operands])
    after = draft.steps.index(last)
    new = copies[last]
    draft.steps[after + 1:after + 1] = [copies[step] for step in inner]
    draft.replace(last, new, frozenset(copies[step] for step in inner))
    return Edit("layer_added", "added", [])


def dtype(draft: Draft, draw: random.Random) -> Edit | None:
    """A stretch computes in another element type, with conversions at its ends."""
    stretch = [s for s in draft.steps if isinstance(s.type, TensorType) and s.type.dtype.name == "f32" and s.number < 0 and not s.bodies]
    if len(stretch) < 4:
        return None
    low = draw.randrange(len(stretch) - 3)
    inside = set(stretch[low:low + draw.randrange(3, 20)])
    inside.discard(draft.root)
    narrow: dict[Step, Step] = {}
    wide: dict[Step, Step] = {}
    made: list[Step] = []
    for step in draft.steps:
        for i, operand in enumerate(step.operands):
            if (step in inside) == (operand in inside) or not isinstance(operand.type, TensorType):
                continue
            known, name = (narrow, "bf16") if step in inside else (wide, "f32")
            if operand.type.dtype.name != "f32":
                continue
            if operand not in known:
                type = operand.type.with_dtype(DTYPES[name])
                known[operand] = Step(hlo.convert, type, [operand], {})
                made.append(known[operand])
            step.operands[i] = known[operand]
        made.append(step)
    draft.steps = made
    for step in inside:
        assert isinstance(step.type, TensorType)
        step.type = step.type.with_dtype(DTYPES["bf16"])
    return Edit("dtype", "changed", list(inside))


def several(draft: Draft, draw: random.Random) -> Edit | None:
    """Five of the others."""
    made = [one(draft, draw) for one in draw.sample([attribute, operator, insert, remove, swap, constant, fused, layer_removed], 5)]
    return Edit("several", "", []) if any(made) else None


EDITS: dict[str, Edits] = {one.__name__: one for one in (
    attribute, operator, insert, remove, swap, constant, fused, renamed, parameter, layer_removed, layer_added, dtype, several)}
