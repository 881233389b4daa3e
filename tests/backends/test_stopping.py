"""Machine code that runs for long, or for ever, is interrupted from Python: by Ctrl-C, by whatever a handler raises, by a budget."""
from __future__ import annotations

import _thread
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import pytest

import irscope
from irscope.backends.loaded_model import Model
from irscope.backends.stopping import LONG, looking, may_take_long, statements
from irscope.lower.program import Launch, Loop
from irscope.lower.tile import For, Stmt
from tests.conftest import Cli

UNTIL = """HloModule until
condition { p = (s32[], s32[]) parameter(0)  x = s32[] get-tuple-element(p), index=0  n = s32[] get-tuple-element(p), index=1
  ROOT t = pred[] compare(x, n), direction=NE }
body { p = (s32[], s32[]) parameter(0)  x = s32[] get-tuple-element(p), index=0  n = s32[] get-tuple-element(p), index=1
  o = s32[] constant(2)  y = s32[] add(x, o)  ROOT t = (s32[], s32[]) tuple(y, n) }
ENTRY e { z = s32[] constant(0)  n = s32[] parameter(0)  i = (s32[], s32[]) tuple(z, n)
  w = (s32[], s32[]) while(i), condition=condition, body=body  ROOT r = s32[] get-tuple-element(w), index=0 }
"""
"""Counts in steps of two to a number: an odd one is never met."""

ADD = "HloModule m\nadd { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }\n"
SUM = ADD + """ENTRY e { c = f32[] parameter(0)  b = f32[1000000,1000000] broadcast(c), dimensions={}
  ROOT n = f32[] reduce(b, c), dimensions={0,1}, to_apply=add }
"""
ROWS = ADD + """ENTRY e { c = f32[64] parameter(0)  z = f32[] constant(0)  b = f32[64,100000000000] broadcast(c), dimensions={0}
  ROOT n = f32[64] reduce(b, z), dimensions={1}, to_apply=add }
"""
NESTED = UNTIL.replace("ENTRY e", "again").replace("n = s32[] parameter(0)", "q = (s32[]) parameter(0)  n = s32[] get-tuple-element(q), index=0").replace(
    "ROOT r = s32[] get-tuple-element(w), index=0", "r = s32[] get-tuple-element(w), index=0  ROOT t = (s32[]) tuple(r)") + """
always { p = (s32[]) parameter(0)  ROOT t = pred[] constant(true) }
ENTRY e { n = s32[] parameter(0)  i = (s32[]) tuple(n)  w = (s32[]) while(i), condition=always, body=again  ROOT r = s32[] get-tuple-element(w), index=0 }
"""
Array = Any
ONE, ROW = np.asarray(1, np.int32), np.ones(64, np.float32)


@contextmanager
def soon(act: Callable[[], None], seconds: float = 0.3) -> Iterator[None]:
    timer = threading.Timer(seconds, act)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("text", "given"), [(UNTIL, ONE), (NESTED, np.asarray(2, np.int32)), (SUM, np.asarray(1, np.float32)), (ROWS, ROW)], ids=["until", "nested", "sum", "rows"])
def test_ctrl_c_ends_a_run(text: str, given: Array, threads: int) -> None:
    model = irscope.compile(text, threads=threads)
    assert model.executable.compiled.stops  # type: ignore[union-attr]
    with pytest.raises(KeyboardInterrupt), soon(_thread.interrupt_main):
        model(given)
    assert not [thread for thread in threading.enumerate() if thread.name == "irscope-run"]


def test_a_program_that_was_stopped_runs_again() -> None:
    model = irscope.compile(UNTIL)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt), soon(_thread.interrupt_main):
            model(ONE)
        assert model(np.asarray(1000, np.int32))[0] == 1000
    call = model.bind([np.asarray(12, np.int32)])
    call()
    assert call.outputs[0] == 12


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no such signal here")
def test_what_a_handler_raises_arrives() -> None:
    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError("too late")
    model = irscope.compile(UNTIL)
    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(TimeoutError, match="too late"):
            model(ONE)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(("text", "given"), [(UNTIL, ONE), (SUM, np.asarray(1, np.float32))], ids=["until", "sum"])
def test_a_budget_ends_a_run(text: str, given: Array) -> None:
    model = irscope.compile(text)
    with pytest.raises(irscope.BudgetExceeded, match=r"takes more than 0\.2 s of processor time"), irscope.limits(seconds=0.2):
        model(given)


def test_another_thread_may_run_meanwhile() -> None:
    """A run that another thread waits in does not hold the interpreter."""
    model = irscope.compile(UNTIL)
    failed: list[BaseException] = []

    def endless() -> None:
        try:
            with irscope.limits(seconds=0.5):
                model(ONE)
        except BaseException as error:
            failed.append(error)
    thread = threading.Thread(target=endless)
    thread.start()
    other = irscope.compile(UNTIL.replace("constant(2)", "constant(1)"))
    assert other(np.asarray(77, np.int32))[0] == 77
    thread.join()
    assert [type(error) for error in failed] == [irscope.BudgetExceeded]


def test_what_depends_on_constants_is_interrupted_too() -> None:
    """Nothing endless runs while compiling; what runs there does so like any program."""
    began = time.thread_time()
    model = irscope.compile(UNTIL.replace("n = s32[] parameter(0)\n", "n = s32[] parameter(0)").replace("n = s32[] parameter(0)  i", "n = s32[] constant(1)  i"))
    with pytest.raises(KeyboardInterrupt), soon(_thread.interrupt_main):
        model()
    assert time.thread_time() - began < 60


def test_a_short_run_of_a_program_without_known_end_is_run_where_it_is_called() -> None:
    model = irscope.compile(UNTIL)
    made: list[threading.Thread] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", made.append)
        assert model(np.asarray(1000, np.int32))[0] == 1000
    assert made == []
    assert model(np.asarray(2_000_000_000, np.int32))[0] == 2_000_000_000  # too long for that
    assert model.executable._stopper.long  # type: ignore[union-attr]
    assert model(np.asarray(1000, np.int32))[0] == 1000
    assert not model.executable._stopper.long  # type: ignore[union-attr]


def test_short_programs_look_nowhere() -> None:
    for text in ("ENTRY e { x = f32[4096] parameter(0)\n ROOT y = f32[4096] tanh(x) }", "ENTRY e { x = f32[512,512] parameter(0)\n "
                 "ROOT y = f32[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"):
        model = irscope.compile(text)
        assert not may_take_long(model.program)
        assert "irscope_stop" not in "".join(unit.text for unit in model.executable.compiled.units)  # type: ignore[union-attr]


def test_loops_of_few_trips_look_nowhere() -> None:
    model = irscope.compile(counted(100))
    assert not may_take_long(model.program) and model(np.asarray(5, np.int32))[0] == 105
    assert may_take_long(irscope.compile(counted(1 << 30)).program)


def test_notes_of_a_compiler_count_for_nothing() -> None:
    """A stranger may write that an endless loop has one trip."""
    noted = UNTIL.replace("body=body", 'body=body, backend_config={"known_trip_count":{"n":"1"}}')
    assert may_take_long(irscope.compile(noted).program)


def test_a_counter_that_wraps_around_is_no_counter() -> None:
    text = counted(127).replace("s32", "s8").replace("constant(1)", "constant(2)")
    assert may_take_long(irscope.compile(text).program)


def counted(trips: int) -> str:
    return f"""HloModule m
condition {{ p = (s32[], s32[]) parameter(0)  x = s32[] get-tuple-element(p), index=0  n = s32[] constant({trips})  ROOT t = pred[] compare(x, n), direction=LT }}
body {{ p = (s32[], s32[]) parameter(0)  x = s32[] get-tuple-element(p), index=0  o = s32[] constant(1)  y = s32[] add(x, o)
  s = s32[] get-tuple-element(p), index=1  u = s32[] add(s, o)  ROOT t = (s32[], s32[]) tuple(y, u) }}
ENTRY e {{ a = s32[] parameter(0)  z = s32[] constant(0)  i = (s32[], s32[]) tuple(z, a)  w = (s32[], s32[]) while(i), condition=condition, body=body
  ROOT g = s32[] get-tuple-element(w), index=1 }}
"""


@pytest.mark.parametrize("text", [SUM, ROWS])
def test_no_stretch_between_two_looks_is_long(text: str) -> None:
    model: Model = irscope.compile(text)
    kernels = [step.kernel for step in model.program.steps if isinstance(step, Launch)]
    assert any(looking(kernel) for kernel in kernels)
    for kernel in kernels:
        bodies = looking(kernel)
        stack: list[list[Stmt]] = [kernel.body]
        while stack:
            for loop in (s for s in stack.pop() if isinstance(s, For)):
                inside = statements(loop.body)
                assert (id(loop.body) in bodies) is (inside <= LONG < statements([loop]))
                if inside > LONG:
                    stack.append(loop.body)
    assert not any(isinstance(step, Loop) for step in model.program.steps)


def test_libraries_have_no_word_to_look_at(cli: Cli, tmp_path: object) -> None:
    from pathlib import Path

    assert isinstance(tmp_path, Path)
    (tmp_path / "m.hlo").write_text(UNTIL)
    done = cli("compile-and-run", tmp_path / "m.hlo", "--emit", "llvm")
    assert done.exit_code == 0 and "irscope_stop" not in done.stdout
