"""Makes a failing program smaller as long as it fails in the same way: fewer results, inputs in place of statements, smaller sizes."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.programs.numbers import DIGITS, INTEGERS
from tests.programs.program import NAMES, Program, Statement, Value, defined

Fails = Callable[[Program], bool]


def minimise(program: Program, fails: Fails, tries: int = 400) -> Program:
    """The smallest program that is reached by changes that each keep the failure; at most so many are tried."""
    program = program.live()
    while tries > 0:
        for smaller in changes(program):
            tries -= 1
            if fails(smaller):
                program = smaller
                break
            if tries <= 0:
                break
        else:
            return program
    return program


def changes(program: Program) -> Iterator[Program]:
    """Programs one step smaller, the boldest first."""
    if len(program.outputs) > 1:
        for value in program.outputs:
            yield replace(program, outputs=(value,)).live()
        for value in program.outputs:
            yield replace(program, outputs=tuple(v for v in program.outputs if v is not value)).live()
    for statement in program.statements:
        if statement.effect:
            yield without(program, statement)
    for statement in reversed(program.statements):
        if statement.value is not None and not statement.effect and statement.value not in program.outputs:
            yield with_input(program, statement)
    for statement in reversed(program.statements):
        if statement.value is not None:
            yield from shorter(program, statement)
    for statement in reversed(program.statements):
        if statement.value is not None and statement.value in program.outputs:
            yield from with_operand_out(program, statement)
    if program.special:
        yield replace(program, special=False)
    yield from smaller_numbers(program)


def without(program: Program, statement: Statement) -> Program:
    return replace(program, statements=tuple(s for s in program.statements if s is not statement)).live()


def with_input(program: Program, statement: Statement) -> Program:
    """An input in place of a statement, of the same type."""
    value = statement.value
    assert value is not None
    low, high = (-3.0, 3.0) if value.dtype in DIGITS else (0.0, 1.0 if value.dtype == "pred" else 7.0)
    if value.dtype in INTEGERS and value.dtype[0] == "s" and value.low < 0:
        low = -7.0
    made = replace(value, low=max(low, value.low), high=min(high, value.high), grain=1.0)
    if made.low > made.high:
        made = replace(made, low=value.low, high=value.high)
    return replace(without(program, statement), inputs=(*program.inputs, made)).live()


def shorter(program: Program, statement: Statement) -> Iterator[Program]:
    """An operand of the same type in place of what a statement makes of it."""
    value = statement.value
    assert value is not None
    known = values_of(program)
    for name in dict.fromkeys(NAMES.findall(statement.text.partition(" = ")[2])):
        other = known.get(name)
        if other is not None and name != value.name and (other.dtype, other.shape) == (value.dtype, value.shape):
            def renamed(text: str, old: str = value.name, new: str = name) -> str:
                return re.sub(rf"\b{old}\b", new, text)
            rest = tuple(replace(s, text=renamed(s.text)) for s in program.statements if s is not statement)
            outputs = tuple(dict.fromkeys(other if v.name == value.name else v for v in program.outputs))
            yield replace(program, statements=rest, outputs=outputs).live()


def with_operand_out(program: Program, statement: Statement) -> Iterator[Program]:
    """What a result is computed from as the result."""
    known = values_of(program)
    for name in dict.fromkeys(NAMES.findall(statement.text.partition(" = ")[2])):
        if name in known and name not in defined(statement):
            outputs = tuple(known[name] if v.name == statement.name else v for v in program.outputs)
            yield replace(program, outputs=tuple(dict.fromkeys(outputs))).live()


def values_of(program: Program) -> dict[str, Value]:
    return {v.name: v for v in program.inputs} | {s.value.name: s.value for s in program.statements if s.value is not None}


NUMBER = re.compile(r"(?<![\w.%])\d+(?![\w.])")


def smaller_numbers(program: Program) -> Iterator[Program]:
    """One number of the text, wherever it stands, made smaller: sizes go together, and what no longer fits is refused."""
    texts = [s.text for s in program.statements] + list(program.helpers.values())
    found = {int(n) for text in texts for n in NUMBER.findall(text)} | {n for v in program.inputs for n in v.shape}
    for number in sorted((n for n in found if 2 <= n < 10_000), reverse=True):
        for other in dict.fromkeys((1, 2, number // 2, number - 1)):
            if 0 < other < number:
                yield renumbered(program, number, other)


def renumbered(program: Program, number: int, other: int) -> Program:
    def text(old: str) -> str:
        return re.sub(rf"(?<![\w.%]){number}(?![\w.])", str(other), old)

    def value(old: Value) -> Value:
        return replace(old, shape=tuple(other if n == number else n for n in old.shape))
    return replace(program, inputs=tuple(map(value, program.inputs)), outputs=tuple(map(value, program.outputs)),
                   statements=tuple(replace(s, text=text(s.text), value=value(s.value) if s.value is not None else None) for s in program.statements),
                   helpers={name: text(helper) for name, helper in program.helpers.items()})
