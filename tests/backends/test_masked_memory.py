"""Masked loads and stores write and read what their lanes say and nothing else, on every CPU level that runs here."""
from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import irscope
from benchmarks.masked_memory import CPUS, Form, masks, runnable, texts, wrong_masks
from irscope.backends import llvm_compile, llvm_masked
from irscope.backends.executable import Executable
from irscope.backends.llvm_code import Code
from irscope.backends.llvm_masked import LaneRun
from irscope.graph import DTYPES
from irscope.lower.memory import aligned_bytes
from tests.conftest import Cli

SIZE = {"movb": 1, "vpextrb": 1, "pextrb": 1, "movw": 2, "vpextrw": 2, "pextrw": 2, "movl": 4, "vmovd": 4, "vmovss": 4, "vpextrd": 4,
        "vextractps": 4}


def reduced(wide: str, narrow: str, lanes: int, mask: tuple[bool, ...]) -> str:
    """The smallest text of the kind that LLVM 22.1 miscompiles: a truncated vector, stored under a constant mask."""
    code = Code()
    held = "<" + ", ".join(f"i1 {'true' if lane else 'false'}" for lane in mask) + ">"
    llvm_masked.store(code, LaneRun(narrow, lanes, "%p", int(narrow[1:]) // 8), "%t", held, mask)
    return "\n".join([f"define void @f(<{lanes} x {wide}> %v, ptr %p) {{", f"  %t = trunc <{lanes} x {wide}> %v to <{lanes} x {narrow}>",
                      *code.text(), "  ret void", "}", *code.declarations])


def stored_bytes(text: str, cpu: str) -> list[int]:
    """How many bytes each instruction writes behind the pointer that is the function's only one."""
    made = llvm_compile.assembly(text, llvm_compile.cross("x86_64-unknown-linux-gnu", cpu))
    return [SIZE[word] for word in re.findall(r"^\s+(\w+)\s+[^#\n]*, (?:-?\d+)?\(%rdi\)", made, re.MULTILINE)]


@pytest.mark.parametrize("cpu", ["haswell", "skylake-avx512", "znver4"])
@pytest.mark.parametrize(("wide", "narrow", "lanes"), [("i32", "i16", 16), ("i32", "i8", 16), ("i64", "i32", 8), ("i64", "i8", 8), ("i16", "i8", 32)])
def test_one_lane_of_a_truncated_vector_is_a_store_of_its_own_size(wide: str, narrow: str, lanes: int, cpu: str) -> None:
    for lane in (0, 5, lanes - 1):
        text = reduced(wide, narrow, lanes, tuple(i == lane for i in range(lanes)))
        assert stored_bytes(text, cpu) == [int(narrow[1:]) // 8]


@pytest.mark.parametrize("cpu", ["haswell", "skylake-avx512", "znver4"])
def test_one_lane_of_floats_that_were_truncated_integers(cpu: str) -> None:
    """Floats keep LLVM's intrinsic: it does not see the truncation through the change of type."""
    code = Code()
    lanes = ", ".join(f"i1 {'true' if lane == 5 else 'false'}" for lane in range(8))
    llvm_masked.store(code, LaneRun("float", 8, "%p", 4), "%f", f"<{lanes}>", [lane == 5 for lane in range(8)])
    text = "\n".join(["define void @f(<8 x i64> %v, ptr %p) {", "  %t = trunc <8 x i64> %v to <8 x i32>",
                      "  %f = bitcast <8 x i32> %t to <8 x float>", *code.text(), "  ret void", "}", *code.declarations])
    assert stored_bytes(text, cpu) == [4]


def test_masks_of_integers_are_whole_pairs_and_the_rest_are_scalars() -> None:
    for lanes in (2, 3, 5, 8):
        for held in product((False, True), repeat=lanes):
            text = reduced("i32", "i16", lanes, held)
            mask = [m == "true" for m in re.findall(r"i1 (true|false)", text)] or [False] * lanes
            scalars = [int(lane) for lane in re.findall(r"extractelement .*, i64 (\d+)", text)]
            assert all(mask[i] == (i ^ 1 < lanes and mask[i ^ 1]) for i in range(lanes) if mask[i])
            assert sorted([*scalars, *(i for i in range(lanes) if mask[i])]) == [i for i in range(lanes) if held[i]]
            assert len(scalars) == len(re.findall(r"store i16", text))


def test_a_computed_mask_of_integers_has_no_intrinsic_that_could_fold() -> None:
    code = Code()
    llvm_masked.store(code, LaneRun("i8", 4, "%p", 1), "%t", "%m", None)
    assert "masked" not in "\n".join(code.text()) and not code.declarations


@pytest.mark.parametrize(("dtype", "size"), [("c64", 8), ("c128", 16)])
def test_a_tail_of_complex_numbers_is_read_no_further(dtype: str, size: int, cli: Cli, tmp_path: Path) -> None:
    """One number behind 32: LLVM 22.1 reads a whole register behind it where the mask is a shuffle of constants."""
    path = tmp_path / "tail.hlo"
    path.write_text(f"HloModule m\nENTRY e {{ x = {dtype}[33] parameter(0)\n y = {dtype}[33] parameter(1)\n ROOT r = {dtype}[33] add(x, y) }}\n")
    made = cli("compile-and-run", path, "--emit", "asm", "--cpu", "haswell", "--threads", "1").stdout
    whole = re.findall(r"^\s+v(?!maskmov)\w+\s+(\d+)\(%r[ds]i\), .*%ymm", made, re.MULTILINE)
    assert [offset for offset in map(int, whole) if offset + 32 > 33 * size] == []
    assert re.search(rf"^\s+v\w+\s+{32 * size}\(%r[ds]i\)", made, re.MULTILINE), "the tail is read at its place"


def test_one_file_names_the_masked_intrinsics() -> None:
    package = Path(irscope.__file__).parent
    assert [p.name for p in package.rglob("*.py") if re.search(r"@llvm\.masked\.", p.read_text())] == ["llvm_masked.py"]


@pytest.mark.parametrize("cpu", [pytest.param(c, marks=pytest.mark.skipif(not runnable(c), reason=f"this machine does not run {c}")) for c in CPUS])
def test_nothing_is_written_beside_the_lanes(cpu: str) -> None:
    for where, source, to, lanes in (("store", "f32", "bf16", 16), ("store", "s32", "s8", 8), ("store", "s64", "s32", 8),
                                     ("store", "f32", "f8e4m3fn", 17), ("load", "bf16", "f32", 8), ("gather", "s8", "s32", 4)):
        form = Form(where, DTYPES[source], DTYPES[to], lanes)
        machine = llvm_compile.host(cpu)
        tried = [mask for mask in masks(lanes) if mask[0] in ("first 1", f"first {lanes - 1}", "only 3", "random 0", "computed first 1")]
        assert wrong_masks(form, machine, texts(form, machine, tried)) == [], str(form)


DOT = """HloModule m
ENTRY e {{
  p0 = {t}[{m},{k}] parameter(0)
  p1 = {t}[{k},{n}] parameter(1)
  ROOT d = {t}[{m},{n}] dot(p0, p1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""


@pytest.mark.parametrize("columns", [1, 17])
@pytest.mark.parametrize("name", ["bf16", "f16", "s8", "s16", "f8e4m3fn"])
def test_products_of_narrow_types_write_their_columns_alone(name: str, columns: int) -> None:
    dtype = DTYPES[name].numpy()
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-2, 3, s).astype(np.float32).astype(dtype) for s in ((9, 9), (9, columns)))
    text = DOT.format(t=name, m=9, k=9, n=columns)
    one, two = (irscope.compile(text, threads=threads) for threads in (1, 2))
    size = 9 * columns * dtype.itemsize
    memory = aligned_bytes(size + 64)
    memory[:] = 0xA5
    assert isinstance(one.executable, Executable)
    one.executable.bind([x, y], [memory[:size].view(dtype).reshape(9, columns)])()
    assert (memory[size:] == 0xA5).all()
    wanted = (x.astype(np.float32) @ y.astype(np.float32)).astype(dtype)
    assert memory[:size].tobytes() == wanted.tobytes() == two(x, y)[0].tobytes()


