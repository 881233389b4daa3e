"""Compiled programs as bytes: they come back whole, and damaged bytes are refused before anything of them runs."""
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irscope.backends import llvm_compile
from irscope.backends.compile import compile_program
from irscope.backends.executable import Port
from irscope.backends.program_file import MOST_NESTED, BadProgramFile, CompiledProgram, of_content, to_pieces
from irscope.graph.dtypes import BF16, F32, PRED, S32
from irscope.lazy import Array
from irscope.lower.printer import print_program
from irscope.lower.program import Copy, Launch, Loop, Program, Slot, Step
from tests.backends.running import program_of
from tests.backends.test_programs import binary, counting


def compiled(program: Program) -> CompiledProgram:
    """A program of one-dimensional ports."""
    ports = [[Port(s.name, s.dtype, (s.elements,)) for s in slots] for slots in (program.inputs, program.outputs)]
    return CompiledProgram(program, ports[0], ports[1], compile_program(program, llvm_compile.host(), use_cache=False), facts={"a": [1, "b"]})


def content_of(program: CompiledProgram) -> Array:
    pieces = to_pieces(program)
    assert pieces is not None
    return np.frombuffer(b"".join(map(bytes, pieces)), np.uint8)


def changed(content: Array, change: Callable[[dict[str, Any]], None]) -> Array:
    """The content with another header."""
    length = int.from_bytes(content[:8].tobytes(), "little")
    header = json.loads(content[8:8 + length].tobytes())
    change(header)
    made = json.dumps(header).encode()
    return np.frombuffer(len(made).to_bytes(8, "little") + made + bytes(-(8 + len(made)) % 64) +
                         content[8 + length + -(8 + length) % 64:].tobytes(), np.uint8)


def test_a_program_with_loops_copies_and_constants_comes_back() -> None:
    first = compiled(counting())
    again, facts = of_content(content_of(first), dict)
    for n in (0, 1, 10):
        given = np.array([n], np.int32)
        assert again.loaded(1)(given)[0].tobytes() == first.loaded(1)(given)[0].tobytes()
    assert facts == again.facts == {"a": [1, "b"]} and list(again.inputs) == list(first.inputs) and again.code.stops == first.code.stops
    assert again.code.objects == first.code.objects and again.code.scratch == first.code.scratch


def test_placement_plan_and_schedules_come_back() -> None:
    program = counting()
    program.launches()[0].kernel.schedule["tile"] = [4, 5]
    again = of_content(content_of(compiled(program)), dict)[0].program
    for mine, theirs in zip((*program.inputs, *program.outputs, *program.temps, *program.constants),
                            (*again.inputs, *again.outputs, *again.temps, *again.constants), strict=True):
        assert (mine.name, mine.dtype, mine.elements, mine.scope, mine.number, mine.offset, mine.zeroed) == \
            (theirs.name, theirs.dtype, theirs.elements, theirs.scope, theirs.number, theirs.offset, theirs.zeroed)
    for one, two in zip(program.launches(), again.launches(), strict=True):
        assert one.kernel.name == two.kernel.name and one.kernel.schedule == two.kernel.schedule
        assert [(slot.name, place) for slot, place in one.args] == [(slot.name, place) for slot, place in two.args]
    assert [type(step) for step in again.steps] == [type(step) for step in program.steps] and "while" in print_program(again)
    assert len(again.kernels()) == len(program.kernels()) and again.arena_bytes == program.arena_bytes


def test_constants_of_types_that_numpy_lacks_come_back() -> None:
    out = Slot("y", BF16, 3, "output", 0)
    data = np.array([1.5, -2, 3], BF16.numpy())
    constant, empty = Slot("c", BF16, 3, "constant", data=data), Slot("e", F32, 0, "constant", data=np.zeros(0, np.float32))
    program = Program("p", [], [out], [], [constant, empty], [Copy(constant, out, 6)])
    again, _ = of_content(content_of(compiled(program)), dict)
    assert again.loaded(1)()[0].tobytes() == data.tobytes() and again.constant_bytes == 6


def test_content_that_is_cut_off_anywhere_is_refused() -> None:
    content = content_of(compiled(counting()))
    for end in [*range(0, 300, 7), content.size // 2, content.size - 1]:
        with pytest.raises(BadProgramFile):
            of_content(content[:end], dict)


@pytest.mark.parametrize("change", [
    lambda h: h.pop("steps"), lambda h: h["steps"].append(["fly", 1]), lambda h: h["steps"].append(["copy", 99, 0, 4, 0, 0]),
    lambda h: h["sizes"].append(1 << 40), lambda h: h["sizes"].append(-64), lambda h: h.update(slots=[[], []]),
    lambda h: h["ports"][0].append(["x", "f33", [1], []]), lambda h: h["slots"][3][0].__setitem__(2, 7), lambda h: h.update(facts=3),
    lambda h: h.update(objects=0), lambda h: h.update(kernels=None),
])
def test_headers_that_do_not_fit_are_refused(change: Callable[[dict[str, Any]], None]) -> None:
    with pytest.raises(BadProgramFile):
        of_content(changed(content_of(compiled(counting())), change), dict)


def test_ports_that_do_not_fit_the_memory_are_refused() -> None:
    def smaller(header: dict[str, Any]) -> None:
        header["ports"][0][0][2] = [3]

    program = compiled(program_of(binary("add", F32, 6)))
    with pytest.raises(ValueError, match="holds"):
        of_content(changed(content_of(program), smaller), dict)[0].loaded(1)


def test_a_program_that_nests_too_deep_is_not_stored() -> None:
    flag = Slot("flag", PRED, 1, "temp", offset=0)
    less = binary("LT", S32, 1, PRED)
    steps: list[Step] = []
    for _ in range(MOST_NESTED + 2):
        steps = [Loop([Launch(less, [])], flag, steps)]
    program = CompiledProgram(Program("deep", temps=[flag], steps=steps), [], [], compiled(counting()).code)
    assert to_pieces(program) is None
