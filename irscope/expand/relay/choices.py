"""Choices: a statically known ``if`` runs one branch, any other becomes a conditional; ``match`` runs the first arm that fits.

    match (%l) { Cons(%h, _) => %h, Nil => 0f }      removed: the constructor of %l is known at compile time
"""

from __future__ import annotations

import re
from typing import Any

from irscope.expand.frames import captures
from irscope.expand.relay.program import RelayProgram, Run
from irscope.expand.relay.values import Constructor, Data, Reference, describe, nodes_of, rebuilt, unlike
from irscope.formats.relay.attributes import Field, Match, Named
from irscope.formats.relay.functions import Pattern
from irscope.formats.relay.types import type_text
from irscope.graph import Node, TensorType, TupleType
from irscope.graph.dtypes import PRED
from irscope.source import UserError

STEP = re.compile(r"\.(\d+)")
ALIKE = "which constructor made a value is to be known: let both branches use the same one, and choose between the arrays in it"
KNOWN = "irscope compiles data types where the constructor of each value is known: build the value in @main, of arrays"


# ---------------------------------------------------------------------- data types


def constructed(program: RelayProgram, node: Node, fields: list[object]) -> object:
    """``Cons(%x, %l)``; a constructor without its fields is a function."""
    name = str(Named.of(node).name)
    wanted = program.constructors.get(name, len(fields))
    if not fields and wanted:
        return Constructor(name, wanted)
    return made_by(program, node, Constructor(name, wanted), fields)


def made_by(program: RelayProgram, node: Node, constructor: Constructor, fields: list[object]) -> Data:
    """The data that a constructor builds from its fields. Raises UserError for a wrong number of them."""
    if len(fields) != constructor.fields:
        raise UserError(f"{constructor.name} takes {constructor.fields} fields, and gets {len(fields)}{program.where(node)}")
    return Data(constructor.name, list(fields))


def bound(program: RelayProgram, node: Node, values: list[object]) -> Any:
    """The value that a pattern variable binds: the part of the scrutinee at ``attrs['path']``, ``Cons.1Cons.0``."""
    subject = values[0]
    for step in STEP.findall(str(Field.of(node).path)):
        parts = subject.fields if isinstance(subject, Data) else subject
        if not isinstance(parts, list) or int(step) >= len(parts):
            raise UserError(f"the pattern that binds %{node.name} needs more parts than {describe(subject)} has{program.where(node)}",
                            KNOWN)
        subject = parts[int(step)]
    return subject


def match(program: RelayProgram, node: Node, values: list[object]) -> Run:
    """``match``: the operands are the scrutinee and the values that each arm captures."""
    subject, arguments = values[0], captures(node, values[1:])
    for body, inside in zip(node.bodies, arguments, strict=True):
        if fits(program, node, body.notes.get("pattern"), subject):
            return program.call(body, [subject, *inside])
    raise UserError(f"no pattern matches {describe(subject)}{program.where(node)}",
                    f"the patterns are {', '.join(Match.of(node).patterns)}")


def fits(program: RelayProgram, node: Node, pattern: Pattern, value: Any) -> bool:
    """Whether a value matches a pattern. Raises UserError where this depends on data."""
    stack: list[tuple[Pattern, Any]] = [(pattern, value)]
    while stack:
        wanted, given = stack.pop()
        if wanted is None:
            continue
        name, inner = wanted
        if isinstance(given, Node | Reference):
            raise UserError(f"a pattern {name or 'of a tuple'} is compared with {describe(given)}{program.where(node)}", KNOWN)
        if isinstance(given, Data) != bool(name):
            return False
        parts = given.fields if isinstance(given, Data) else given
        if isinstance(given, Data) and given.constructor != name:
            return False
        if not isinstance(parts, list) or (inner and len(inner) != len(parts)):
            has = len(parts) if isinstance(parts, list) else 0
            raise UserError(f"the pattern {name or 'of a tuple'} has {len(inner)} parts, and the value {has}{program.where(node)}")
        stack.extend(zip(reversed(inner), reversed(parts), strict=False))
    return True


# ---------------------------------------------------------------------- branches


def branch(program: RelayProgram, node: Node, values: list[Any]) -> Run:
    """``if``: the operands are the condition and the values that each branch captures."""
    arguments = captures(node, values[1:])
    known = program.t.known(truth(program, node, values[0]))
    if known is not None:
        way = 0 if known.item() else 1
        return program.call(node.bodies[way], arguments[way])
    return _conditional(program, node, values[0], arguments)


def truth(program: RelayProgram, node: Node, value: object) -> Node:
    """A condition, which is one bool. Raises UserError for anything else."""
    if isinstance(value, Node) and isinstance(value.type, TensorType) and value.type.dtype is PRED and not value.type.rank:
        return value
    what = type_text(value.type) if isinstance(value, Node) else describe(value)
    raise UserError(f"the condition is {what}, not bool{program.where(node)}")


def tensors(program: RelayProgram, node: Node, value: object) -> list[Node]:
    """The leaves of a value that a choice or a loop passes on. Raises UserError where one is not a tensor."""
    try:
        return nodes_of(value)
    except UserError as fault:
        raise UserError(f"{fault.message}{program.where(node)}", "run each branch as a separate program") from None


def _conditional(program: RelayProgram, node: Node, condition: Node, arguments: list[list[Any]]) -> Run:
    """Both branches as bodies; their writes to outer references become further results."""
    t = program.t
    frames, values, written = [], [], []
    with program.nested(node):
        for way, body in enumerate(node.bodies):
            with t.body(f"{node.name}.{('then', 'else')[way]}") as frame, program.journal() as journal:
                program.at(node)
                values.append((yield program.call(body, arguments[way])))
            written.append(journal.undo())
            frames.append(frame)
    program.at(node)
    cells = list(dict.fromkeys(cell for theirs in written for cell in theirs))
    shapes = [[value, *(theirs.get(cell, cell.value) for cell in cells)] for value, theirs in zip(values, written, strict=True)]
    other = unlike(*shapes)
    if other is not None:
        raise UserError(f"the branches give {other[0]} and {other[1]}{program.where(node)}", ALIKE)
    rows = []
    for frame, shape in zip(frames, shapes, strict=True):
        with t.again(frame):
            rows.append([t.here(leaf) for leaf in tensors(program, node, shape)])
        program.keep(frame.graph)
    types = [TupleType(tuple(leaf.type for leaf in row)) for row in rows]
    if str(types[0]) != str(types[1]):
        raise UserError(f"the branches give {types[0]} and {types[1]}{program.where(node)}")
    value, *after = rebuilt(shapes[0], t.conditional(condition, frames, rows))
    for cell, new in zip(cells, after, strict=True):
        program.write(cell, new)
    return value
