"""The devices of the policy xla-gpu: by name, by XLA's target text, and what differs between them."""
from __future__ import annotations

from pathlib import Path

import pytest

from irscope.fusion.xla import gpu_launch
from irscope.fusion.xla.gpu_device import DEVICES, device_named, device_of
from irscope.fusion.xla.instructions import Computation
from irscope.lint.fusion import remarks
from irscope.lint.verdicts import verdicts_of
from irscope.source import UserError
from tests.effort import within
from tests.fusion.test_xla_gpu import gain
from tests.fusion.xla_texts import module


@pytest.mark.parametrize("device, line, factor", [
    ("h100", "f16[2048,1024] negate(x)", 4), ("b200", "f16[2048,1024] negate(x)", 8), ("b200", "f32[2048,1024] negate(x)", 4),
    ("b200", "s8[2048,1024] negate(x)", 16), ("b200", "s8[2048,1024] reverse(x), dimensions={0}", 8), ("h100", "f16[2048,1023] negate(x)", 4), ("b200", "f16[1023,1022] negate(x)", 2),
    ("b200", "f16[333,1001] negate(x)", 1), ("b200", "f16[256,1024] negate(x)", 1),
    ("b200", "f16[2048,256,4] transpose(x), dimensions={1,0,2}", 4), ("b200", "f16[2048,256,8] transpose(x), dimensions={1,0,2}", 8)])
def test_how_many_elements_a_thread_computes(device: str, line: str, factor: int) -> None:
    """By the number of elements, and on Blackwell by how many stay side by side, up to 128 bits."""
    type_, dims = line.split(" ")[0], line.split("[")[1].split("]")[0].split(",")
    source = f"{type_.split('[')[0]}[{','.join((dims[1], dims[0], *dims[2:]) if 'transpose' in line else dims)}]"
    computation = Computation.of(module(f"x = {source} parameter(0)\n ROOT n = {line}").main())
    assert gpu_launch.unroll_factor(DEVICES[device], None, computation.root) == factor


def test_a_text_of_blank_lines_is_refused_at_once() -> None:
    with within(1), pytest.raises(UserError, match="is not a target text"):
        device_of("\n" * 40_000, "d")


@pytest.mark.parametrize("line", ["major: " + "9" * 5000, "major: 9 minor: " + "1" * 5000])
def test_a_compute_capability_of_thousands_of_digits_is_refused(line: str) -> None:
    numbers = "".join(f"{key}: 100\n" for key in ("core_count", "fpus_per_core", "clock_rate_ghz", "memory_bandwidth", "l2_cache_size",
                                                  "shared_memory_per_block", "threads_per_core_limit"))
    with pytest.raises(UserError) as raised:
        device_of(f"gpu_device_info {{\n{numbers}cuda_compute_capability {{ {line} }} }}", "d")
    assert "it has at most three digits" in raised.value.help


def test_devices_differ() -> None:
    """Each was measured by itself, and reads and computes at its own pace."""
    text = """
        x = f32[4194304] parameter(0)
        e = f32[4194304] tanh(x)
        s = f32[2097152] slice(e), slice={[0:2097152]}
        n = f32[4194304] negate(e)
        ROOT t = (f32[2097152], f32[4194304]) tuple(s, n)"""
    times = {name: gain(name, text, "", "e") for name in ("h100", "a100", "b200")}
    assert len(set(times.values())) == 3


def test_devices_by_name_and_by_text(tmp_path: Path) -> None:
    assert device_named(None) is device_named("H100") is DEVICES["h100"]
    text = """gpu_device_info {
        threads_per_core_limit: 2048
        shared_memory_per_block: 49152
        core_count: 108
        fpus_per_core: 64
        memory_bandwidth: 2039040000000
        l2_cache_size: 41943040
        clock_rate_ghz: 1.41
        cuda_compute_capability { major: 8 }
    }"""
    made = device_of(text, "a100")
    assert made == DEVICES["a100"]
    path = tmp_path / "mine.txtpb"
    path.write_text(text)
    assert device_named(str(path)).cores == 108
    with pytest.raises(UserError, match="no core_count"):
        device_of("gpu_device_info {}", "x")
    with pytest.raises(UserError, match="no device"):
        verdicts_of(module("ROOT x = f32[4] parameter(0)"), "xla-gpu", "h1000")


def test_an_answer_for_a_device_without_measured_cycles_says_whose_they_are(tmp_path: Path) -> None:
    """By the capability in its target text; for the others there is nothing to say."""
    some = module("x = f32[4]{0} parameter(0)\n ROOT n = f32[4]{0} negate(x)")
    assert remarks(some, "xla-gpu") == remarks(some, "xla-gpu", "a100") == remarks(some, "xla-gpu", "b200") == []
    path = tmp_path / "blackwell.txtpb"
    path.write_text("""gpu_device_info {
        threads_per_core_limit: 2048
        shared_memory_per_block: 49152
        core_count: 142
        fpus_per_core: 128
        memory_bandwidth: 1792000000000
        l2_cache_size: 134217728
        clock_rate_ghz: 2.6
        cuda_compute_capability { major: 12 }
    }""")
    assert "blackwell (sm_120): XLA has measured no cycles of instructions on it and takes those of sm_86" \
        in remarks(some, "xla-gpu", str(path))[0]


TARGET = """gpu_device_info {
  threads_per_core_limit: 2048
  shared_memory_per_block: 49152
  core_count: 132
  fpus_per_core: 128
  clock_rate_ghz: 1.98
  memory_bandwidth: 3352320000000
  l2_cache_size: 52428800
}
"""


@pytest.mark.parametrize("clock", ["e", "1.2.3", "0", "1e19", "1e-9"])
def test_an_impossible_number_of_a_target_text_is_refused(clock: str) -> None:
    assert device_of(TARGET, "mine").clock == 1.98
    with pytest.raises(UserError, match="mine: clock_rate_ghz is ") as caught:
        device_of(TARGET.replace("1.98", clock), "mine")
    assert caught.value.help == "it is a number from 0.001 to 1e+18"
