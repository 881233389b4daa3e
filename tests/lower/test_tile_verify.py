"""Planted mistakes are found, sound kernels pass; the interpreter stops where a kernel missteps."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from irscope.graph.dtypes import BF16, F32, F64, S32, S64
from irscope.lower.build import KernelBuilder
from irscope.lower.interpret import Misstep, interpret_kernel
from irscope.lower.program import Copy, Launch, Loop, Program, Slot, Switch
from irscope.lower.tile import Assign, Expr, For, Kernel, Let, Load, Register, Store
from irscope.lower.verify import verify_kernel, verify_program


def sound() -> KernelBuilder:
    """y[i] = sum of x[i, :]"""
    k = KernelBuilder("rows")
    x, y = k.buffer("x", F32, (4, 8), "in"), k.buffer("y", F32, (4,), "out")
    with k.par(0, 4) as i:
        total = k.reg(F32, 0.0)
        with k.loop(0, 8) as j:
            total.set(k.binary("add", total.get(), k.load(x, i * 8 + j)))
        k.store(y, i, total.get())
    return k


def test_a_sound_kernel_passes() -> None:
    assert verify_kernel(sound().finish()) == []


Plant = Callable[[KernelBuilder, Kernel], None]


def add(k: KernelBuilder, *statements: object) -> None:
    k.kernel.body.extend(statements)  # type: ignore[arg-type]


def store(k: KernelBuilder, value: Expr, index: Expr | None = None, buffer: int = 1) -> Store:
    return Store(k.kernel.buffers[buffer], k.index(0) if index is None else index, value)


PLANTS: dict[str, tuple[Plant, str]] = {
    "store to an input": (lambda k, n: add(k, store(k, k.const(1, F32), buffer=0)), "x is only read"),
    "wrong type": (lambda k, n: add(k, store(k, k.const(1, F64))), "f64 is stored to y, which holds f32"),
    "wrong index": (lambda k, n: add(k, store(k, k.const(1, F32), k.const(0, S32))), "the index of y is s32x1"),
    "undefined variable": (lambda k, n: add(k, store(k, k.variable("ghost", F32))), "ghost is used outside"),
    "variable of a closed loop": (lambda k, n: add(k, store(k, k.const(1, F32), n.body[0].var)), "i0 is used outside"),  # type: ignore[attr-defined]
    "defined twice": (lambda k, n: add(k, *([Let(k.variable("twice", F32), k.const(1, F32))] * 2)), "twice is defined twice"),
    "undeclared register": (lambda k, n: add(k, Assign(Register("r9", F32, 1), k.const(1, F32))), "register r9 is set before"),
    "outside": (lambda k, n: add(k, store(k, k.const(1, F32), k.index(4))), "store of y[4] is not shown to lie within 4 elements"),
    "outside with lanes": (lambda k, n: add(k, store(k, k.splat(k.const(1, F32), 8))), "store of y[0..7] is not shown to lie within 4"),
    "before": (lambda k, n: add(k, Load(k.variable("s", F32), n.buffers[0], k.index(-1))), "load of x[-1] is not shown"),
    "load of another type": (lambda k, n: add(k, Load(k.variable("s", S32), n.buffers[0], k.index(0))), "s of s32 is loaded from x"),
    "mixed types": (lambda k, n: add(k, store(k, Expr("add", (k.const(1, F32), k.const(1, F64)), F32))), "add(f32x1, f64x1) gives f32x1"),
    "mixed lanes": (lambda k, n: add(k, store(k, Expr("add", (k.const(1, F32), k.splat(k.const(1, F32), 4)), F32))), "lanes differ"),
    "unknown word": (lambda k, n: add(k, store(k, Expr("twist", (k.const(1, F32),), F32))), "unknown operation"),
    "arithmetic in bf16": (lambda k, n: add(k, Let(k.variable("b", BF16), Expr("neg", (k.const(1, BF16),), BF16))), "nothing computes"),
    "no step": (lambda k, n: add(k, For(k.variable("i9", S64), k.index(0), k.index(4), 0, "for")), "loop i9 has step 0"),
    "strange loop": (lambda k, n: add(k, For(k.variable("i9", S64), k.index(0), k.index(4), 1, "maybe")), "of kind maybe"),
    "same place": (lambda k, n: n.body[0].body.append(store(k, k.const(1, F32))),  # type: ignore[attr-defined]
                   "every iteration of par i0 stores to the same place of y"),
    "par in a loop": (lambda k, n: n.body[0].body[1].body.append(  # type: ignore[attr-defined]
        For(k.variable("i9", S64), k.index(0), k.index(4), 1, "par")), "par i9 is nested in"),
}


@pytest.mark.parametrize("name", PLANTS)
def test_planted_mistakes_are_found(name: str) -> None:
    plant, message = PLANTS[name]
    k = sound()
    plant(k, k.kernel)
    problems = verify_kernel(k.kernel)
    assert any(message in p for p in problems), problems


def test_a_register_may_not_cross_par_iterations() -> None:
    k = KernelBuilder("race")
    x, y = k.buffer("x", F32, (4,), "in"), k.buffer("y", F32, (1,), "out")
    total = k.reg(F32, 0.0)
    with k.par(0, 4) as i:
        total.set(k.binary("add", total.get(), k.load(x, i)))
    k.store(y, 0, total.get())
    assert verify_kernel(k.finish()) == ["register r0 carries a value from one par iteration to the next"]


def launch(shape: tuple[int, ...] = (4, 8), target: str = "output") -> Program:
    kernel = sound().finish()
    x, y = Slot("x", F32, 32, "input", 0), Slot("y", F32, 4, target, 0, offset=0)
    where = {"outputs": [y]} if target == "output" else {"temps": [y]} if target == "temp" else {"constants": [y]}
    return Program("p", [x], steps=[Launch(kernel, [(x, 0), (y, 0)])], **where)  # type: ignore[arg-type]


def test_programs_are_checked() -> None:
    program = launch()
    assert verify_program(program) == []
    step = program.steps[0]
    assert isinstance(step, Launch)
    x, y = step.args[0][0], step.args[1][0]
    wrong = {
        "takes 2 buffers, not 1": Launch(step.kernel, [(x, 0)]),
        "x needs 32 elements, x has 31 from 1": Launch(step.kernel, [(x, 1), (y, 0)]),
        "is no slot of the program": Launch(step.kernel, [(Slot("z", F32, 32, "input", 1), 0), (y, 0)]),
        "x holds f32, n s32": Launch(step.kernel, [(Slot("n", S32, 32, "input", 1), 0), (y, 0)]),
        "writes the input x": Launch(step.kernel, [(x, 0), (x, 0)]),
        "a copy of 20 bytes leaves y": Copy(x, y, 20),
        "a loop runs while y": Loop([], y, []),
        "a switch on y": Switch(y, [[]]),
    }
    for message, bad in wrong.items():
        program.steps = [bad]
        assert any(message in p for p in verify_program(program)), message
    outside = launch(target="temp")
    assert verify_program(outside) == ["temporary y is outside of the arena"]
    outside.arena_bytes = 64
    assert verify_program(outside) == []
    assert any("has no data" in p for p in verify_program(launch(target="constant")))


# ---- the interpreter's own checks

def test_the_interpreter_stops_at_missteps() -> None:
    xs = np.ones(4, np.float32)

    def run(build: Callable[[KernelBuilder], None]) -> None:
        k = KernelBuilder("bad")
        k.buffer("x", F32, (4,), "in")
        k.buffer("y", F32, (4,), "out")
        build(k)
        interpret_kernel(k.kernel, [xs, xs.copy()])

    def at(index: int) -> Callable[[KernelBuilder], None]:
        def build(k: KernelBuilder) -> None:
            k.store(k.kernel.buffers[1], 0, k.load(k.kernel.buffers[0], index))
        return build

    def unwritten(k: KernelBuilder) -> None:
        k.store(k.kernel.buffers[1], 0, k.scratch(F32, (2,)).load([1]))

    for build, message in ((at(4), "outside of 4"), (at(-1), "outside of 4"), (unwritten, "nothing was written")):
        with pytest.raises(Misstep, match=message):
            run(build)
    with pytest.raises(Misstep, match="before it is known"):
        run(lambda k: k.store(k.kernel.buffers[1], 0, k.variable("ghost", F32)))
    with pytest.raises(ValueError, match="takes 2 buffers"):
        interpret_kernel(sound().finish(), [xs])
    with pytest.raises(ValueError, match="not f32"):
        interpret_kernel(sound().finish(), [np.ones(32), xs])


def test_a_place_may_depend_on_a_par_loop_through_a_register() -> None:
    for start, problems in ((lambda i: i, []), (lambda i: 0, ["every iteration of par i0 stores to the same place of y"])):
        k = KernelBuilder("k")
        y = k.buffer("y", F32, (8,), "out")
        with k.par(0, 4) as i:
            at = k.reg(S64, start(i))
            at.set(at.get() + 1)
            k.store(y, k.binary("min", at.now, 7), 1.0)
        assert [p for p in verify_kernel(k.finish()) if "same place" in p] == problems
