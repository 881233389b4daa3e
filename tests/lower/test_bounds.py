"""The proof that kernels stay within their buffers, and that reads find values: sound kernels pass, planted faults are found."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from irscope.api import load
from irscope.fusion.views import Strides
from irscope.graph.dtypes import F32, PRED, S32, S64
from irscope.lower.bounds import ARITHMETIC, MEMORY, REGISTER, unproved
from irscope.lower.build import KernelBuilder
from irscope.lower.contents import verify_contents
from irscope.lower.lowering import lower
from irscope.lower.options import Options
from irscope.lower.program import Copy, Launch, Program
from irscope.lower.tile import Store
from irscope.lower.traversal import walk
from irscope.lower.verify import verify_kernel, verify_program
from tests.lower.running import compiled, drawn
from tests.lower.test_placements import NHWC, residual
from tests.lower.test_templates_interpreted import CASES
from tests.lower.whole import module_of

Write = Callable[[KernelBuilder], None]


def kinds(write: Write, n: int = 20) -> list[str]:
    """What is not shown of a kernel with ``x`` and ``y`` of n elements and indices ``n0``."""
    k = KernelBuilder("k", lanes=8)
    k.buffer("x", F32, (n,), "in")
    k.buffer("y", F32, (n,), "out")
    k.buffer("n0", S32, (n,), "in")
    write(k)
    return [found.kind for found in unproved(k.finish())]


def tail(lanes: int) -> Write:
    """y = x in vectors of 8, the last one masked to some lanes."""
    def write(k: KernelBuilder) -> None:
        x, y, _ = k.kernel.buffers
        with k.loop(0, 16, 8) as i:
            k.store(y, i, k.load(x, i, 8))
        mask = k.vector([lane < lanes for lane in range(8)], PRED)
        k.store(y, 16, k.splat(k.const(1, F32), 8), mask)
    return write


def guarded(limit: int) -> Write:
    """Steps of 8 of which the last does not run."""
    def write(k: KernelBuilder) -> None:
        _, y, _ = k.kernel.buffers
        with k.par(0, 20, 8) as i:
            with k.when(k.compare("LT", i, k.index(limit))):
                k.store(y, i, k.splat(k.const(1, F32), 8))
            with k.otherwise():
                k.store(y, 16, k.splat(k.const(1, F32), 4))
    return write


def computed_mask(limit: int) -> Write:
    def write(k: KernelBuilder) -> None:
        _, y, _ = k.kernel.buffers
        with k.loop(0, 24, 8) as i:
            mask = k.compare("LT", k.splat(i, 8) + k.lane(8), k.splat(k.index(limit), 8))
            k.store(y, i, k.splat(k.const(1, F32), 8), mask)
    return write


def gathered(low: int, high: int) -> Write:
    """Elements at indices that the caller gives, clamped."""
    def write(k: KernelBuilder) -> None:
        x, y, n0 = k.kernel.buffers
        at = k.convert(k.load(n0, 0, 8), S64)
        at = k.binary("min", k.binary("max", at, k.splat(k.index(low), 8)), k.splat(k.index(high), 8))
        k.store(y, 0, k.gather(x, at))
    return write


def strided(first: int, lanes: int, step: int = 5) -> Write:
    """Every fifth element from the first on, in some of 8 lanes."""
    def write(k: KernelBuilder) -> None:
        x, y, _ = k.kernel.buffers
        mask = k.vector([first <= lane < first + lanes for lane in range(8)], PRED)
        at = k.splat(k.index(-step * first), 8) + k.binary("mul", k.lane(8), k.splat(k.index(step), 8))
        k.store(y, 0, k.gather(x, at, mask), mask)
    return write


def window(pad: int) -> Write:
    """A row of taps that are read only inside of the image."""
    def write(k: KernelBuilder) -> None:
        x, y, _ = k.kernel.buffers
        with k.loop(0, 20) as i, k.loop(0, 3) as tap:
            at = i + tap - pad
            inside = k.binary("and", k.compare("GE", at, k.index(0)), k.compare("LT", at, k.index(20)))
            with k.when(inside):
                k.store(y, i, k.load(x, i + tap - 1))
    return write


def blocks(end: int) -> Write:
    """A loop whose bounds depend on the loop around it."""
    def write(k: KernelBuilder) -> None:
        x, y, _ = k.kernel.buffers
        with k.par(0, 3) as b, k.loop(b * 8, k.binary("min", b * 8 + 8, k.index(end)), 4) as i:
            k.store(y, i, k.load(x, i, 4))
    return write


@pytest.mark.parametrize(("right", "wrong"), [
    (tail(4), tail(5)), (guarded(16), guarded(17)), (computed_mask(20), computed_mask(21)), (gathered(0, 19), gathered(0, 20)),
    (gathered(0, 19), gathered(-1, 19)), (strided(0, 4), strided(0, 5)), (strided(0, 4, 6), strided(0, 4, 7)), (strided(2, 4), strided(2, 5)),
    (window(1), window(0)), (window(1), window(2)), (blocks(20), blocks(24)),
], ids=["masked store", "guard", "computed mask", "gather behind", "gather before", "gather of first lanes", "step of a gather", "gather of middle lanes", "tap behind", "tap before", "block"])
def test_one_element_too_far_is_found(right: Write, wrong: Write) -> None:
    assert kinds(right) == []
    assert set(kinds(wrong)) == {ARITHMETIC}


def test_quotients_and_remainders_under_conditions() -> None:
    """Every second position has an element: i // 2 where i % 2 is 0."""
    def write(holds: bool) -> Write:
        def body(k: KernelBuilder) -> None:
            x, y, _ = k.kernel.buffers
            with k.loop(0, 20) as i, k.loop(0, 20) as j:
                even = k.compare("EQ", (i + j) % 2, k.index(0))
                near = k.compare("LT", i + j, k.index(40 if not holds else 39))
                with k.when(k.binary("and", even, near)):
                    k.store(y, (i + j) // 2, k.load(x, (i + j) // 2 + (0 if holds else 1)))
        return body

    assert kinds(write(True)) == []
    assert kinds(write(False)) == [ARITHMETIC]


def test_what_cannot_be_known_is_told_by_its_kind() -> None:
    def carried(k: KernelBuilder) -> None:
        _, y, _ = k.kernel.buffers
        at = k.reg(S64, 0)
        with k.loop(0, 4):
            k.store(y, at.get(), 1.0)
            at.set(at.get() + 3)

    def chosen(k: KernelBuilder) -> None:
        x, y, _ = k.kernel.buffers
        best = k.reg(S64, 0)
        with k.loop(0, 20) as i:
            best.set(k.select(k.compare("GT", k.load(x, i), k.const(0, F32)), i, best.get()))
        k.store(y, best.get(), 1.0)

    def kept(k: KernelBuilder) -> None:
        _, y, _ = k.kernel.buffers
        order = k.scratch(S64, (4,))
        order.store([0], 3)
        k.store(y, order.load([0]), 1.0)

    assert kinds(carried) == [REGISTER]
    assert kinds(chosen) == []
    assert kinds(kept) == [MEMORY]


@pytest.mark.parametrize("name", CASES)
def test_kernels_of_every_template_touch_all_of_their_buffers_and_no_more(name: str) -> None:
    """A result that were one element smaller would be written behind its end, and that is found in every kernel."""
    text, fixed = CASES[name]
    arrays = drawn(load(text).module())
    program, _ = compiled(text, {i: arrays[i] for i in fixed})
    assert verify_program(program) == []
    for kernel in program.kernels():
        for buffer in [b for b in kernel.buffers if b.scope == "out"]:
            buffer.elements -= 1
            assert any(buffer.name in problem for problem in verify_kernel(kernel)), f"{kernel.name}: {buffer.name}"
            buffer.elements += 1


@pytest.mark.parametrize("name", CASES)
def test_a_masked_store_one_lane_too_far_is_found(name: str) -> None:
    text, fixed = CASES[name]
    arrays = drawn(load(text).module())
    program, _ = compiled(text, {i: arrays[i] for i in fixed})
    for kernel in program.kernels():
        for s in walk(kernel.body):
            if isinstance(s, Store) and s.mask is not None and s.mask.op == "const" and s.buffer.scope == "out":
                mask = s.mask
                lanes = sum(mask.value)
                s.mask = replace(mask, value=tuple(lane <= lanes for lane in range(mask.lanes)))
                last = [found for found in unproved(kernel) if found.buffer is s.buffer]
                s.mask = mask
                assert unproved(kernel) == []
                if not last:  # the elements behind belong to the next row: then the very last row is another statement
                    continue
                return


def framed() -> tuple[Program, Launch, int]:
    """A convolution joined with what it reads, from the caller's memory: its launch, and the place of the image among the arguments."""
    program = lower(module_of(residual(NHWC, 1, 16, "sum", "pad")), Options())
    launch = next(step for step in program.launches() if any(b.room for b in step.kernel.params()))
    return program, launch, next(i for i, b in enumerate(launch.kernel.params()) if b.room)


def test_a_value_read_from_its_copy_without_the_offset_is_found() -> None:
    """The strides of the copy that has zeros around it, from the copy's first element on."""
    program, launch, at = framed()
    assert verify_program(program) == []
    image, added = launch.kernel.params()[at], next(b for b in launch.kernel.params() if b.name == "f")
    assert image.layout is not None
    slot, _ = launch.args[at]
    added.layout = Strides(image.layout.shape, image.layout.strides, 0)
    added.elements = slot.elements
    launch.args[launch.kernel.params().index(added)] = (slot, 0)
    assert any("reads zeros around a value" in problem for problem in verify_contents(program))


def test_zeros_that_nobody_cleared_are_found() -> None:
    program, launch, at = framed()
    launch.args[at][0].zeroed = False
    assert any("but they are not there" in problem for problem in verify_program(program))


def test_zeros_that_are_written_over_are_found() -> None:
    program, launch, at = framed()
    slot = launch.args[at][0]
    pairs = [(b, s) for step in program.launches() for b, (s, _) in zip(step.kernel.params(), step.args)]
    writer = next(b for b, s in pairs if s is slot and b.scope == "out")
    assert writer.layout is not None
    batch, height, width, channels = writer.layout.shape
    writer.layout = writer.layout._replace(shape=(batch, height - 1, width + 1, channels))
    assert any("but they are not there" in problem for problem in verify_contents(program))


def test_memory_that_another_value_took_is_found() -> None:
    """Two values that live at the same time, at one address."""
    program = lower(module_of("""HloModule m
ENTRY main {
  x = f32[64,64] parameter(0)
  a = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[64,64] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT c = f32[64,64] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""), Options())
    assert verify_program(program) == []
    first, second = program.temps
    second.offset = first.offset
    assert any("overwritten memory" in problem for problem in verify_program(program))


def test_an_output_that_is_written_in_part_is_found() -> None:
    program, _, _ = framed()
    program.steps.pop()
    assert any("is not written everywhere" in problem for problem in verify_program(program))


CHOOSING = """HloModule m
yes { p = f32[3] parameter(0)
 ROOT r = f32[3] negate(p) }
no { p = f32[3] parameter(0)
 ROOT r = f32[3] cosine(p) }
ENTRY main {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  g = pred[3] compare(x, y), direction=LT
  h = pred[1] slice(g), slice={[1:2]}
  f = pred[] reshape(h)
  ROOT c = f32[3] conditional(f, x, y), true_computation=yes, false_computation=no
}
"""


def test_a_choice_by_what_nobody_wrote_is_found() -> None:
    program = lower(module_of(CHOOSING), Options())
    assert verify_contents(program) == []
    del program.steps[:-1]
    assert any(problem.startswith("a switch reads ") for problem in verify_contents(program))


def test_a_copy_of_what_nobody_wrote_is_found() -> None:
    program = lower(module_of(CHOOSING), Options())
    [copy] = [step for step in program.steps if isinstance(step, Copy)]
    program.steps.remove(copy)
    program.steps.insert(0, copy)
    assert any("is copied where nothing was written" in problem for problem in verify_contents(program))


def test_a_branch_that_writes_its_result_in_part_is_found() -> None:
    program = lower(module_of(CHOOSING), Options())
    program.steps[-1].blocks()[1].clear()
    assert verify_contents(program) == ["output c is not written everywhere"]


def test_a_layout_beyond_its_buffer_is_found() -> None:
    program, launch, at = framed()
    image = launch.kernel.params()[at]
    assert image.layout is not None
    image.layout = image.layout._replace(offset=image.layout.offset + image.elements)
    assert any(f"the layout of {image.name} leaves its {image.elements} elements" in problem for problem in verify_contents(program))
    slot, _ = launch.args[at]
    image.layout = image.layout._replace(offset=image.layout.offset - image.elements)
    launch.args[at] = slot, 1
    assert any(f"the layout of {image.name} leaves its" in problem for problem in verify_contents(program))
