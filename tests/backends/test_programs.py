"""Whole programs: loops, branches, copies, constants, temporaries; calling them; threads; what stands on disk."""
from __future__ import annotations

import os
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

from irscope.backends import cache, llvm_compile, pool
from irscope.backends.compile import compile_program, units
from irscope.backends.executable import Executable, InputMismatch, Port, aligned_empty
from irscope.graph.dtypes import F32, PRED, S32, DType
from irscope.lower.build import KernelBuilder
from irscope.lower.interpret import interpret_program
from irscope.lower.program import Copy, Launch, Loop, Program, Slot, Switch
from irscope.lower.tile import Kernel
from irscope.source import UserError
from tests.backends.running import executable, program_of


def binary(word: str, dtype: DType, count: int, result: DType | None = None, flops: float = 0.0) -> Kernel:
    """``z = word(x, y)`` on all elements; a comparison gives pred."""
    k = KernelBuilder(word, 16)
    x, y = k.buffer("x", dtype, (count,), "in"), k.buffer("y", dtype, (count,), "in")
    z = k.buffer("z", result or dtype, (count,), "out")
    with k.par(0, count) as i:
        a, b = k.load(x, i), k.load(y, i)
        k.store(z, i, k.compare(word, a, b) if word.isupper() else k.binary(word, a, b))
    return k.finish(flops=flops)


def counting() -> Program:
    """while (i < n) { i += 1; x += i }, with the state copied forth and back."""
    n, out = Slot("n", S32, 1, "input", 0), Slot("sum", S32, 1, "output", 0)
    i, total, fresh, flag = (Slot(name, S32 if name != "flag" else PRED, 1, "temp", offset=64 * at)
                             for at, name in enumerate(("i", "total", "fresh", "flag")))
    zero, one = (Slot(f"c{v}", S32, 1, "constant", data=np.array([v], np.int32)) for v in (0, 1))
    add, less = binary("add", S32, 1), binary("LT", S32, 1, PRED)
    body = [Launch(add, [(i, 0), (one, 0), (fresh, 0)]), Copy(fresh, i, 4), Launch(add, [(total, 0), (i, 0), (fresh, 0)]), Copy(fresh, total, 4)]
    steps = [Copy(zero, i, 4), Copy(zero, total, 4), Loop([Launch(less, [(i, 0), (n, 0), (flag, 0)])], flag, body), Copy(total, out, 4)]
    return Program("count", [n], [out], [i, total, fresh, flag], [zero, one], steps, 256)


@pytest.mark.parametrize("n", [0, 1, 10, 1000])
def test_loops(n: int) -> None:
    program = counting()
    run = executable(program)
    assert run(np.array([n], np.int32))[0].tolist() == [n * (n + 1) // 2]
    assert interpret_program(program, [np.array([n], np.int32)])[0].tolist() == [n * (n + 1) // 2]


@pytest.mark.parametrize(("selector", "taken"), [(0, 0), (1, 1), (2, 2), (3, 2), (-1, 2)])
def test_switches(selector: int, taken: int) -> None:
    chosen, out = Slot("s", S32, 1, "input", 0), Slot("y", S32, 1, "output", 0)
    constants = [Slot(f"c{v}", S32, 1, "constant", data=np.array([v * 10], np.int32)) for v in range(3)]
    program = Program("switch", [chosen], [out], [], constants, [Switch(chosen, [[Copy(c, out, 4)] for c in constants])])
    assert executable(program)(np.array([selector], np.int32))[0][0] == taken * 10
    assert interpret_program(program, [np.array([selector], np.int32)])[0][0] == taken * 10


@pytest.mark.parametrize("value", [True, False])
def test_a_pred_switch_runs_the_first_branch_when_true(value: bool) -> None:
    chosen, out = Slot("s", PRED, 1, "input", 0), Slot("y", S32, 1, "output", 0)
    constants = [Slot(f"c{v}", S32, 1, "constant", data=np.array([v], np.int32)) for v in (1, 0)]
    program = Program("switch", [chosen], [out], [], constants, [Switch(chosen, [[Copy(c, out, 4)] for c in constants])])
    assert executable(program)(np.array([value]))[0][0] == value
    assert interpret_program(program, [np.array([value])])[0][0] == value


def test_launches_read_and_write_parts_of_slots() -> None:
    x, y = Slot("x", F32, 10, "input", 0), Slot("y", F32, 6, "output", 0)
    program = Program("parts", [x], [y], steps=[Launch(binary("sub", F32, 3), [(x, 7), (x, 1), (y, 3)]), Copy(x, y, 12, 4, 0)])
    xs = np.arange(10, dtype=np.float32) ** 2
    want = [*xs[1:4], *(xs[7:] - xs[1:4])]
    assert executable(program)(xs)[0].tolist() == interpret_program(program, [xs])[0].tolist() == want


def test_equal_kernels_are_compiled_once() -> None:
    x, y = Slot("x", F32, 8, "input", 0), Slot("y", F32, 8, "output", 0)
    steps = [Launch(binary("add", F32, 8), [(x, 0), (x, 0), (y, 0)]) for _ in range(3)]
    found, _ = units(Program("same", [x], [y], steps=list(steps)), llvm_compile.host())
    assert len(found) == 2  # and main


# ---- calling

def small() -> Executable:
    return executable(program_of(binary("add", F32, 6)))


def test_wrong_arguments_are_refused() -> None:
    run = small()
    x = np.ones(6, np.float32)
    with pytest.raises(InputMismatch, match="takes 2 arrays"):
        run(x)
    with pytest.raises(InputMismatch, match=r"input 1 of test is y: f32\[6\], not float64\[6\]"):
        run(x, x.astype(np.float64))
    with pytest.raises(InputMismatch, match=r"not float32\[2,3\]"):
        run(x.reshape(2, 3), x)


def test_ports_fit_the_program() -> None:
    program = program_of(binary("add", F32, 6))
    compiled = compile_program(program, llvm_compile.host())
    x, y, z = Port("x", F32, (6,)), Port("y", F32, (6,)), Port("z", F32, (6,))
    assert Executable(program, [x, y], [z], compiled, 1)
    for inputs, outputs in (([x], [z]), ([x, Port("y", F32, (5,))], [z]), ([x, Port("y", S32, (6,))], [z]), ([x, y], [])):
        with pytest.raises(ValueError, match="holds f32"):
            Executable(program, inputs, outputs, compiled, 1)


def test_arrays_with_gaps_are_copied() -> None:
    x = np.arange(12, dtype=np.float32)
    assert small()(x[::2], x[::-1][:6])[0].tolist() == (x[::2] + x[::-1][:6]).tolist()


def test_outputs_are_new_unless_they_are_given() -> None:
    run = small()
    x = np.ones(6, np.float32)
    assert run(x, x)[0] is not run(x, x)[0]
    call = run.bind([x, x])
    call()
    assert call.outputs[0].tolist() == [2.0] * 6
    x[:] = 5
    call()
    assert call.outputs[0].tolist() == [10.0] * 6
    again = run.bind([x, x], call.outputs)
    assert again.outputs[0] is call.outputs[0]
    with pytest.raises(InputMismatch, match="multiple of 64"):
        run.bind([x, x], [np.empty(100, np.float32)[1:7]])
    shared = aligned_empty(np.dtype(np.float32), (6,))
    with pytest.raises(InputMismatch, match="overlaps"):
        run.bind([shared, x], [shared])
    with pytest.raises(InputMismatch, match="writable"):
        run.bind([x, x], [np.empty(6, np.float64)])


def test_calls_from_many_threads_do_not_mix() -> None:
    run = executable(counting())
    wrong: list[int] = []

    def work(n: int) -> None:
        for _ in range(50):
            if run(np.array([n], np.int32))[0][0] != n * (n + 1) // 2:
                wrong.append(n)
    workers = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert wrong == []


# ---- threads

def heavy(count: int = 5000) -> Program:
    """A kernel that believes to be worth sharing out."""
    return program_of(binary("mul", F32, count, flops=1e9))


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_threads_share_the_work(threads: int) -> None:
    run = executable(heavy(), threads)
    x = np.arange(5000, dtype=np.float32)
    call = run.bind([x, x])
    for _ in range(200):
        call.outputs[0][:] = -1
        call()
        assert (call.outputs[0] == x * x).all()


def test_each_thread_has_its_own_scratch() -> None:
    k = KernelBuilder("own", 8)
    x, y = k.buffer("x", F32, (256, 8), "in"), k.buffer("y", F32, (256, 8), "out")
    with k.par(0, 256) as i:
        row = k.scratch(F32, (8,))
        with k.loop(0, 8) as j:
            row.store([7 - j], k.load(x, i * 8 + j))
        k.store(y, i * 8, k.load(row.buffer, 0, 8))
    run = executable(program_of(k.finish(flops=1e9)), 4)
    xs = np.random.default_rng(0).standard_normal((256, 8)).astype(np.float32)
    for _ in range(50):
        assert (run(xs.reshape(-1))[0].reshape(256, 8) == xs[:, ::-1]).all()


def _forked() -> None:
    """The body of the test below, which exists where processes fork."""
    run = executable(heavy(), 2)
    x = np.arange(5000, dtype=np.float32)
    assert (run(x, x)[0] == x * x).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is what is tested
        child = os.fork()
    if child == 0:
        os._exit(0 if (run(x, x)[0] == x * x).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (run(x, x)[0] == x * x).all()


if hasattr(os, "fork"):
    def test_a_forked_child_makes_its_own_threads() -> None:
        _forked()


def test_a_pool_ends() -> None:
    mine = pool.ThreadPool(2)
    mine.stop()
    assert not any(worker.is_alive() for worker in mine.workers)


@pytest.mark.parametrize(("triple", "platform", "word"), [
    ("aarch64-unknown-linux-gnu", "linux", "i64 98"), ("x86_64-pc-windows-msvc", "win32", "SwitchToThread"), ("arm64-apple-darwin", "darwin", "usleep")])
def test_the_pool_exists_for_other_systems(triple: str, platform: str, word: str) -> None:
    text = pool.runtime_text(triple, platform)
    assert word in text
    llvm_compile.check(text)
    assert llvm_compile.object_code(text, llvm_compile.cross(triple))


# ---- on disk

def test_objects_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRSCOPE_CACHE", str(tmp_path))
    machine = llvm_compile.host()
    first = compile_program(counting(), machine)
    again = compile_program(counting(), machine)
    assert first.from_cache == 0 and again.from_cache == len(again.units) == 3
    assert first.objects == again.objects
    assert compile_program(counting(), machine, use_cache=False).from_cache == 0
    assert compile_program(counting(), llvm_compile.host("haswell")).from_cache == 0


def test_damaged_entries_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRSCOPE_CACHE", str(tmp_path))
    machine = llvm_compile.host()
    compile_program(counting(), machine)
    entries = [p for p in tmp_path.rglob("*") if p.is_file()]
    for entry, content in zip(entries, (b"", b"nonsense", entries[2].read_bytes()[:-1])):
        entry.write_bytes(content)
    compiled = compile_program(counting(), machine)
    assert compiled.from_cache == len(entries) - 3
    run = Executable(counting(), [Port("n", S32, (1,))], [Port("sum", S32, (1,))], compiled, 1)
    assert run(np.array([4], np.int32))[0][0] == 10


def test_the_oldest_entries_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRSCOPE_CACHE", str(tmp_path))
    names = [cache.key(str(n)) for n in range(5)]
    for age, name in enumerate(names):
        cache.write(name, bytes(100))
        os.utime(tmp_path / name[:2] / name, (1000 - age, 1000 - age))
    size = (tmp_path / names[0][:2] / names[0]).stat().st_size
    cache.prune(tmp_path, 2 * size)
    assert [cache.read(name) is not None for name in names] == [True, True, False, False, False]


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    for value in (str(blocked / "below"), "off"):
        monkeypatch.setenv("IRSCOPE_CACHE", value)
        assert executable(counting())(np.array([3], np.int32))[0][0] == 6
    assert cache.folder() is None
    monkeypatch.delenv("IRSCOPE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform != "win32":
        assert cache.folder() == tmp_path / "irscope"


# ---- other machines

@pytest.mark.parametrize("triple", ["aarch64-unknown-linux-gnu", "riscv64-unknown-linux-gnu", "x86_64-unknown-linux-gnu", "armv7-linux-gnueabihf"])
def test_cross_targets(triple: str) -> None:
    compiled = compile_program(counting(), llvm_compile.cross(triple), use_cache=False)
    assert all(compiled.objects)


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(llvm_compile.CompileFailed, match="no target"):
        llvm_compile.cross("pdp11-dec-unix")


def test_levels_of_x86_64_have_short_names() -> None:
    triple = "x86_64-unknown-linux-gnu"
    for level in ("v2", "v3", "v4"):
        assert llvm_compile.accepts(level, triple)
        assert llvm_compile.cross(triple, level) == llvm_compile.cross(triple, f"x86-64-{level}")
    assert llvm_compile.cross("aarch64-unknown-linux-gnu", "v2").cpu == "v2"


def test_threads_that_the_system_does_not_start_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under a limit on threads or on memory; the workers that did start are ended."""
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def limited(self: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(self)
        start(self)
    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(UserError, match="the system starts 3 of the 5 threads and no more") as refused:
        pool.ThreadPool(5)
    assert "--threads 3" in refused.value.help
    assert len(started) == 2 and not any(worker.is_alive() for worker in started)
