"""``--profile`` and ``--kernel``: structure, sums and units of the report; no test depends on times."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irscope.api.profiling import Rates
from irscope.backends.peaks import CacheLevel, Peak
from irscope.backends.profiling import KernelTime
from irscope.graph.dtypes import F32, F64
from irscope.lower.tile import Kernel
from tests.backends.test_programs import binary
from tests.conftest import Cli

PEAK = Peak(100.0, (CacheLevel(1000, 50.0), CacheLevel(None, 10.0)), 1, False, "a test")
QUICK = ("--profile", "--bench-seconds", "0.01", "--peak", "table", "--format", "json")


def report(cli: Cli, *args: object) -> dict[str, Any]:
    result = cli("compile-and-run", *args, *QUICK)
    assert result.exit_code == 0, result.stderr
    profile: dict[str, Any] = json.loads(result.stdout)["profile"]
    return profile


@pytest.mark.parametrize("sample", ["mlp.pre.hlo", "residual.pre.hlo", "newton.pre.hlo", "dense.relay"])
@pytest.mark.parametrize("threads", [1, 2])
def test_parts_add_up(sample: str, threads: int, samples: Path, cli: Cli) -> None:
    profile = report(cli, samples / sample, "--threads", threads)
    call, kernels = profile["call"], profile["kernels"]
    slack = 0.001 * (3 + len(kernels))
    assert call["total_us"] == pytest.approx(call["checks_us"] + call["launch_us"] + call["kernels_us"], abs=slack)
    assert call["kernels_us"] == pytest.approx(sum(row["us"] for row in kernels), abs=slack)
    assert call["idle_us"] == pytest.approx(threads * call["kernels_us"] - sum(row["busy_us"] for row in kernels), abs=threads * slack)
    assert profile["threads"] == profile["peak"]["threads"] == threads
    assert [row["us"] for row in kernels] == sorted((row["us"] for row in kernels), reverse=True)
    for row in kernels:
        if row["us"] > 1 and row["gflops"] is not None:
            assert row["gflops"] == pytest.approx(row["flops"] / row["us"] / 1e3, rel=1e-2)
            assert row["gbs"] == pytest.approx(row["bytes"] / row["us"] / 1e3, rel=1e-2)
        assert (row["roofline_share"] is None) == (row["bound"] is None)
        if row["flops"] is None:
            assert row["gflops"] is None and row["roofline_share"] is None


def test_kernels_name_the_nodes_of_the_text(samples: Path, cli: Cli) -> None:
    kernels = report(cli, samples / "mlp.pre.hlo", "--threads", 1)["kernels"]
    assert {"dot_general.2", "max.3"} <= {node for row in kernels for node in row["nodes"]}
    assert all(row["runs"] == 1 and row["schedule"]["template"] for row in kernels)
    whole = json.loads(cli("compile-and-run", samples / "mlp.pre.hlo", "--format", "json").stdout)["flops"]
    assert sum(row["flops"] for row in kernels) == 2 * 32 * 128 * 256 + 2 * 32 * 256 * 64 < whole  # without biases and relu


def test_work_of_a_group_of_kernels_is_unknown_for_each(samples: Path, cli: Cli) -> None:
    frame = next(row for row in report(cli, samples / "residual.pre.hlo", "--threads", 1)["kernels"] if row["name"].endswith("_frame"))
    assert frame["flops"] is None and frame["gflops"] is None and frame["roofline_share"] is None and frame["gbs"] > 0


def test_the_text_report(samples: Path, cli: Cli) -> None:
    result = cli("compile-and-run", samples / "residual.pre.hlo", "--profile", "--bench-seconds", "0.01", "--peak", "table", "--threads", 2)
    assert result.exit_code == 0, result.stderr
    for words in ("GFLOP/s", "of roofline", "call      ", "checks ", "launch ", "2 threads waited", "peak      ", "of memory on 2 threads"):
        assert words in result.stdout, words
    assert "note: the peak of this machine is not measured, but taken from the table of families: " in result.stderr
    row = next(line for line in result.stdout.splitlines() if line.startswith("conv_general_dilated_2_frame "))
    assert row.rstrip().endswith("?")


def test_a_measured_peak_has_no_note(samples: Path, cli: Cli) -> None:
    result = cli("compile-and-run", samples / "mlp.pre.hlo", "--profile", "--bench-seconds", "0.01", "--threads", 1)
    assert result.exit_code == 0 and "(measured: " in result.stdout and "not measured" not in result.stderr


def test_sizes_that_vary_are_profiled(cli: Cli, tmp_path: Path) -> None:
    path, given = tmp_path / "n.hlo", tmp_path / "x.npz"
    path.write_text("ENTRY main { x = f32[<=8] parameter(0)\n ROOT n = f32[<=8] negate(x) }\n")
    np.savez(given, x=np.ones(3, np.float32))
    assert report(cli, path, "--inputs", given)["kernels"]


def test_the_results_do_not_change(samples: Path, cli: Cli, tmp_path: Path) -> None:
    one, two = tmp_path / "1.npz", tmp_path / "2.npz"
    cli("compile-and-run", samples / "mlp.pre.hlo", "--save-outputs", one)
    cli("compile-and-run", samples / "mlp.pre.hlo", *QUICK, "--save-outputs", two)
    assert np.load(one)["out0"].tobytes() == np.load(two)["out0"].tobytes()


def test_the_reference_engine_has_no_kernels(samples: Path, cli: Cli) -> None:
    result = cli("compile-and-run", samples / "mlp.pre.hlo", "--profile", "--engine", "reference")
    assert result.exit_code == 2 and "--profile times compiled code" in result.stderr


# ---------------------------------------------------------------------- rates

def row(flops: float, bytes: float, us: float, **more: Any) -> KernelTime:
    return KernelTime(Kernel("k", flops=flops, **more), 1, us, us, bytes)


def test_rates_are_in_1e9_a_second() -> None:
    rates = Rates.of(row(5e4, 800.0, 1.0), PEAK)
    assert (rates.gflops, rates.gbs) == (50.0, 0.8)
    assert (rates.roofline_share, rates.bound) == (0.5, "compute")


def test_the_smallest_level_that_holds_the_bytes_bounds_a_kernel() -> None:
    assert Rates.of(row(0.0, 1000.0, 1.0), PEAK).roofline_share == pytest.approx(1.0 / 50)
    beyond = Rates.of(row(0.0, 1001.0, 1.0), PEAK)
    assert beyond.roofline_share == pytest.approx(1.001 / 10) and beyond.bound == "memory" and beyond.gflops == 0.0
    twice = Rates.of(KernelTime(Kernel("k"), 2, 1.0, 1.0, 2000.0), PEAK)
    assert twice.roofline_share == pytest.approx(2.0 / 50)  # the data of each launch are in the first level


def test_unknown_is_unknown() -> None:
    unknown = Rates.of(row(5e4, 800.0, 1.0, counts_flops=False), PEAK)
    assert unknown == Rates(None, 0.8, None, None)
    assert Rates.of(KernelTime(Kernel("k", flops=3.0)), PEAK) == Rates(None, None, None, None)  # it did not run


def test_doubles_have_half_the_peak() -> None:
    single, double = (binary("add", dtype, 4, flops=1e5) for dtype in (F32, F64))
    shares = [Rates.of(KernelTime(kernel, 1, 1.0, 1.0, 8.0), PEAK).roofline_share for kernel in (single, double)]
    assert shares == [1.0, 2.0]


# ---------------------------------------------------------------------- --kernel

X86 = ("--target", "x86_64-linux-gnu", "--cpu", "v3")


@pytest.mark.parametrize(("stage", "words"), [
    ("asm", ("retq", "Begin function")), ("llvm", ("define void @k_", "fma")), ("loops", ("kernel dot_general_2(", "fma")),
])
def test_one_kernel_is_printed(stage: str, words: tuple[str, ...], samples: Path, cli: Cli) -> None:
    result = cli("compile-and-run", samples / "mlp.pre.hlo", "--emit", stage, "--kernel", "dot_general_2", *X86)
    assert result.exit_code == 0, result.stderr
    assert all(word in result.stdout for word in words) and "irscope_main" not in result.stdout
    whole = cli("compile-and-run", samples / "mlp.pre.hlo", "--emit", stage, *X86)
    assert len(result.stdout) < len(whole.stdout)


def test_a_kernel_that_is_not_there(samples: Path, cli: Cli) -> None:
    near = cli("compile-and-run", samples / "mlp.pre.hlo", "--emit", "asm", "--kernel", "dot_general_4")
    assert near.exit_code == 2 and "there is no kernel 'dot_general_4'" in near.stderr and "did you mean dot_general_" in near.stderr
    far = cli("compile-and-run", samples / "mlp.pre.hlo", "--emit", "asm", "--kernel", "zzz")
    assert far.exit_code == 2 and "the kernels are dot_general_2, " in far.stderr


def test_kernel_needs_a_text_stage(samples: Path, cli: Cli, tmp_path: Path) -> None:
    alone = cli("compile-and-run", samples / "mlp.pre.hlo", "--kernel", "dot_general_2")
    assert alone.exit_code == 2 and "--kernel selects what --emit writes" in alone.stderr
    for stage in ("obj", "so"):
        library = cli("compile-and-run", samples / "mlp.pre.hlo", "--emit", stage, "--kernel", "dot_general_2", "-o", tmp_path / "m.o")
        assert library.exit_code == 2 and "has all kernels of its program" in library.stderr
        assert not (tmp_path / "m.o").exists()
