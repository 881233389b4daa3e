"""Reads one instruction with the cursor: accepts every form of HLO, and reports every fault with its place."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.formats.hlo.assembly import UNDEFINED, Assembly
from irscope.formats.hlo.asynchronous import check_chain, wrap
from irscope.formats.hlo.attributes import Head, read_attributes
from irscope.formats.hlo.checks import check, check_branches
from irscope.formats.hlo.faults import (
    ILLEGAL_NAME,
    LOSSY_PRINT,
    MISSING_TYPE,
    OPERAND_COUNT,
    OPERAND_TYPE,
    PARAMETER_NUMBER,
    SHORT_LITERAL,
    STRAY_OPERAND,
    UNKNOWN_OPCODE,
    Span,
)
from irscope.formats.hlo.inferred import infer
from irscope.formats.hlo.lexer import Cursor
from irscope.formats.hlo.literals import read_literal
from irscope.formats.hlo.opcodes import OPCODES, Opcode, opcode_named
from irscope.formats.hlo.types import begins_type, compatible, refuse_element_type
from irscope.graph import NO_ATTRS, UNKNOWN, Node, TensorType, TupleType, Type
from irscope.ops.attrs import Literal
from irscope.source import Note, did_you_mean

COMPACTED = "the text was printed with compact operands (...), which leaves operands out"
PRINT_AGAIN = "print it again with the default HloPrintOptions (as_text(), or a dump by XLA_FLAGS=--xla_dump_to=...)"

# Former opcodes, and what to write today.
GONE = {
    "sparse": "XLA removed sparse arrays from HLO in 2020", "cross-replica-sum": "it is called all-reduce now",
    "trace": "trace was removed from HLO", "tuple-select": "tuples are no longer selected; select their elements",
    **{old: f"comparisons are compare(...), direction={new} now" for old, new in (
        ("equal-to", "EQ"), ("not-equal-to", "NE"), ("greater-than", "GT"), ("greater-than-or-equal-to", "GE"), ("less-than", "LT"),
        ("less-than-or-equal-to", "LE"), ("eq", "EQ"), ("ne", "NE"), ("gt", "GT"), ("ge", "GE"), ("lt", "LT"), ("le", "LE"))},
}


def read_instruction(assembly: Assembly, cursor: Cursor) -> Node:
    """Step over one instruction, ``ROOT`` included, and add it to the open computation."""
    root_at = cursor.at
    is_root = cursor.eat_word("ROOT")
    at = cursor.at + cursor.text.startswith("%", cursor.at)
    if cursor.kind == "attribute":
        cursor.refuse(f"a blank is required between the name {cursor.value} and =", sees=False)
    if cursor.kind == "type":
        cursor.refuse(f"{cursor.value} is the name of an element type, and no name for an instruction", ILLEGAL_NAME,
                      f"call it {cursor.value}_", sees=False)
    name = cursor.name("an instruction, name = type opcode(operands)")
    if not cursor.sees("="):
        cursor.refuse(f"expected '=' after the name {name}")
    try:
        cursor.next()
        node = read_right_side(assembly, cursor, name, at)
    except Exception:
        assembly.stand_in(name, at)
        raise
    assembly.check_name(name, at)
    return assembly.add(node, is_root, root_at)


def read_right_side(assembly: Assembly, cursor: Cursor, name: str, at: int, nested: bool = False) -> Node:
    """``type opcode(operands), attributes``; a nested instruction has no attributes."""
    type = assembly.types.read(cursor) if begins_type(cursor) else None
    word, word_at = cursor.value, cursor.at
    if cursor.kind != "word":
        cursor.refuse("expected an opcode")
    if cursor.text.startswith("[", cursor.after):
        refuse_element_type(cursor)
    spec = opcode_named(word)
    if spec is None:
        spec = _unknown(assembly, word, word_at, name)
    cursor.next()
    if type is None and not spec.infers and spec.name in OPCODES:
        help = f"e.g. f32[2,3] {word}(...); was it printed with the option that omits result shapes? {PRINT_AGAIN}"
        assembly.tell(MISSING_TYPE, f"{word} must write the type of its result", Span(word_at, len(word), name), help)
        type = UNKNOWN
    head = Head(name, at, spec, word, word_at, nested)
    if spec.name == "parameter":
        return _parameter(assembly, cursor, head, type or UNKNOWN)
    if spec.name == "constant":
        return _constant(assembly, cursor, head, type or UNKNOWN)
    operands_at, spoilt = cursor.at, assembly.faults.spoilt
    operands = read_operands(assembly, cursor, name) if spec.name in OPCODES else _whatever_operands(assembly, cursor)
    if spec.operands is not None and len(operands) != spec.operands:
        message = f"{word} takes {spec.operands} operand{'s' * (spec.operands != 1)}, but has {len(operands)}"
        assembly.tell(OPERAND_COUNT, message, Span(operands_at, assembly.on_line(operands_at, cursor.at), name))
    found = read_attributes(assembly, cursor, head)
    op = assembly.op(spec.name)
    node = Node(op, name, type or UNKNOWN, operands, found.values or NO_ATTRS, found.graphs(), at)
    if spec.name == "conditional":
        check_branches(assembly, node, found.at)
    if spec.wraps and spec.name == "async-start":
        wrap(assembly, node, spec.wraps)
    if spec.name.startswith("async-"):
        check_chain(assembly, node, spec, word)
    if type is None and spec.name in OPCODES and assembly.faults.spoilt == spoilt:  # else its operands or attributes are reported
        node.type = infer(assembly, node, word, word_at)
    if spec.operands is None or len(operands) == spec.operands:
        check(assembly, node)
    if assembly.faults.spoilt != spoilt and spec.name in OPCODES:
        assembly.spoil(node)
    return node


def read_operands(assembly: Assembly, cursor: Cursor, owner: str) -> tuple[Node, ...]:
    """Step over ``(operand, ...)``."""
    cursor.expect("(", "before the operands")
    operands: list[Node] = []
    for _ in cursor.elements() if not cursor.sees(")") else ():
        operand = _operand(assembly, cursor, owner)
        if operand is not None:
            operands.append(operand)
    if not cursor.eat(")"):
        cursor.refuse("expected ',' or ')' after an operand")
    return tuple(operands)


def _whatever_operands(assembly: Assembly, cursor: Cursor) -> tuple[Node, ...]:
    """The operands of an unknown opcode: every known name in its parentheses."""
    cursor.expect("(", "before the operands")
    operands: list[Node] = []
    for _ in _up_to_parenthesis(cursor, "after the operands"):
        if cursor.kind in ("name", "word") and cursor.value in assembly.scope.names:
            operands.append(assembly.scope.names[cursor.value])
    return tuple(operands)


def _up_to_parenthesis(cursor: Cursor, where: str) -> Iterator[None]:
    """Step over the tokens up to and including the parenthesis that closes the open one; the body of the loop runs at each token."""
    depth = 1
    while depth:
        if cursor.kind == "end":
            cursor.refuse(f"expected ')' {where}")
        yield
        depth += cursor.sees("(") - cursor.sees(")")
        cursor.next()


def _operand(assembly: Assembly, cursor: Cursor, owner: str) -> Node | None:
    """``type? name``, ``name#1#0``, or an instruction written inline."""
    if cursor.sees("..."):
        cursor.refuse(COMPACTED, LOSSY_PRINT, PRINT_AGAIN, sees=False)
    begin = cursor.at
    type: Type | None = None
    if begins_type(cursor):
        type = assembly.types.read(cursor)
    elif cursor.sees(",") or cursor.sees(")"):
        assembly.tell(STRAY_OPERAND, "an operand is missing here; XLA's parser continues without it", Span(begin, 1, owner))
        return None
    is_name = cursor.kind == "name" or (cursor.kind == "word" and cursor.peek() != ("mark", "("))
    if not is_name and cursor.kind == "word":
        cursor.goto(begin)
        return _nested(assembly, cursor, begin)
    if not is_name:
        if assembly.makes_parameters and type is not None and len(assembly.scopes) == 1:
            return _made_parameter(assembly, f"_{len(assembly.scope.graph.nodes)}", type, begin)
        if type is not None and (cursor.sees(",") or cursor.sees(")")):
            assembly.tell(STRAY_OPERAND, "a type without the name of an operand; it is ignored",
                          Span(begin, max(1, cursor.at - begin), owner), "write the name after the type, without a comma")
            return None
        missing = f"is a ')' missing before {cursor.value}=?" if cursor.kind == "attribute" else ""
        cursor.refuse("expected an operand: a name, a type and a name, or an instruction", help=missing)
    name, at, length = cursor.value, cursor.at, cursor.after - cursor.at
    cursor.next()
    if assembly.makes_parameters and len(assembly.scopes) == 1 and name not in assembly.scope.names:
        if type is None:
            cursor.goto(at)
            cursor.refuse(f"the operand {name} has no type; in a single instruction, without a module around it, each operand needs one",
                          help=f"e.g. f32[2] {name}", sees=False)
        node = _made_parameter(assembly, name, type, begin)
    else:
        node = assembly.operand(name, at + (length - len(name) if assembly.text[at] == "%" else 0))
    if cursor.sees("#"):
        node = _element(assembly, cursor, node, at)
    if type is not None and node.op is not UNDEFINED and node.type is not UNKNOWN and not compatible(type, node.type):
        assembly.tell(OPERAND_TYPE, f"the operand is written as {type}, but %{node.name} is {node.type}",
                      Span(begin, at + length - begin, owner), "", (Note(f"%{node.name} gets its type here", node.loc),))
    return node


def _nested(assembly: Assembly, cursor: Cursor, begin: int) -> Node:
    """An instruction written as an operand: ``add(max(x, y), z)``."""
    cursor.nest(4)
    probe = Cursor(cursor.text, begin, cursor.end)
    if begins_type(probe):
        assembly.types.read(probe)
    node = read_right_side(assembly, cursor, f"{probe.value}.anon", begin, nested=True)
    node.name = assembly.scope.free_name(node.name)
    cursor.depth -= 4
    return assembly.add(node, False)


def _made_parameter(assembly: Assembly, name: str, type: Type, at: int) -> Node:
    """A parameter that a single instruction implies."""
    number = sum(node.op.name == "parameter" for node in assembly.scope.graph.nodes)
    return assembly.add(Node(assembly.op("parameter"), name, type, (), {"number": number}, (), at, -1, (), True), False)


def _element(assembly: Assembly, cursor: Cursor, node: Node, at: int) -> Node:
    """``%t#1#0``: tuple elements without a ``get-tuple-element`` in the text; each becomes a synthetic node."""
    scope = assembly.scope
    while cursor.eat("#"):
        index_at, length = cursor.at, cursor.after - cursor.at
        index = cursor.integer("the number of an element (expects integer)")
        if node.op is UNDEFINED:
            continue
        elements = node.type.elements if isinstance(node.type, TupleType) else None
        if elements is None or not 0 <= index < len(elements):
            what = f"GTE index {index} out of bounds: %{node.name} has {len(elements)} elements" if elements is not None else \
                f"%{node.name} is {node.type}, and # takes an element of a tuple (GTE operand must be tuple)"
            assembly.tell(OPERAND_TYPE, what, Span(at, index_at + length - at, node.name))
            return assembly.stand_in(f"{node.name}#{index}", at)
        name = f"{node.name}#{index}"
        made = scope.names.get(name)
        if made is None:
            op, attrs = assembly.op("get-tuple-element"), {"index": index}
            made = assembly.add(Node(op, name, elements[index], (node,), attrs, (), at, -1, (), True), False)
        node = made
    return node


def _parameter(assembly: Assembly, cursor: Cursor, head: Head, type: Type) -> Node:
    cursor.expect("(", "before the number of the parameter")
    number_at, length = cursor.at, cursor.after - cursor.at
    number = cursor.integer("the number of the parameter")
    if number < 0:
        assembly.tell(PARAMETER_NUMBER, "the number of a parameter must be 0 or more", Span(number_at, length, head.name))
    cursor.expect(")", "after the number of the parameter")
    found = read_attributes(assembly, cursor, head)
    replicated = found.values.pop("parameter_replication", None)
    if replicated is not None and type is not UNKNOWN:
        leaves = sum(1 for _ in type.leaves())
        if leaves != len(replicated):
            message = f"the parameter has {leaves} leaf buffers, but parameter_replication has {len(replicated)} values"
            assembly.tell(OPERAND_COUNT, message, Span(found.at["parameter_replication"], 21, head.name))
    return Node(assembly.op("parameter"), head.name, type, (), {"number": number, **found.values}, (), head.at)


def _constant(assembly: Assembly, cursor: Cursor, head: Head, type: Type) -> Node:
    cursor.expect("(", "before the value of the constant")
    values: dict[str, object] = {}
    if type is UNKNOWN:
        for _ in _up_to_parenthesis(cursor, "after the value of the constant"):
            pass
        values["literal"] = Literal(type, "{...}", True)
    else:
        if cursor.kind != "mark" and isinstance(type, TensorType) and type.shape:
            message = f"the constant is {type}, but is written as one number: the first element, followed by zeros"
            assembly.tell(SHORT_LITERAL, message, Span(cursor.at, cursor.after - cursor.at, head.name),
                          "a constant with the same number everywhere is a broadcast of a scalar")
        values["literal"] = read_literal(cursor, type)
        cursor.expect(")", "after the value of the constant")
    found = read_attributes(assembly, cursor, head)
    found.values.pop("parameter_replication", None)
    return Node(assembly.op("constant"), head.name, type, (), {**values, **found.values}, (), head.at)


def _unknown(assembly: Assembly, word: str, at: int, name: str) -> Opcode:
    """Report an opcode that HLO does not have, and read it with any operands and attributes."""
    assembly.tell(UNKNOWN_OPCODE, f"Unknown opcode: {word}", Span(at, len(word), name), GONE.get(word) or did_you_mean(word, OPCODES))
    return Opcode(word, None, {}, (), True)
