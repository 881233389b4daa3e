"""Out-of-memory errors of XLA, as its CPU, GPU and TPU compilers print them, and the values that their buffers are."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from irscope import api
from irscope.fleet.out_of_memory import PeakBuffer, parse_out_of_memory
from irscope.fleet.peak_buffers import peak_buffers
from tests.conftest import Cli
from tests.effort import within

BLOCKS = """Traceback (most recent call last):
  File "train.py", line 30, in <module>
jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 6291456 bytes.
BufferAssignment OOM Debugging.
BufferAssignment stats:
             parameter allocation:    6.00MiB
              constant allocation:         0B
        maybe_live_out allocation:    1.50MiB
     preallocated temp allocation:  384.0KiB
                 total allocation:   12.00MiB
              total fragmentation:         0B (0.00%)
Peak buffers:
\tBuffer 1:
\t\tSize: 2.00KiB
\t\tOperator: op_name="jit(f)/jit(main)/mlp/add" source_file="net.py" source_line=45
\t\tXLA Label: fusion
\t\tShape: f32[16,32]{1,0}
\t\t==========================

\tBuffer 2:
\t\tSize: 1.00KiB
\t\tEntry Parameter Subshape: f32[8,32]
\t\t==========================

\tBuffer 3:
\t\tSize: 512B
\t\tXLA Label: custom-call
\t\tShape: f32[128]
\t\t==========================
"""
LIST = """RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 34.19G of 30.75G hbm. Exceeded hbm capacity by 3.44G.
Largest program allocations in hbm:

  1. Size: 6.00G
     Operator: op_name="pjit(step)/while/body/dot_general" source_file="w1.py" source_line=206
     Shape: u32[12582912,1]{1,0:T(8,128)}
     Unpadded size: 48.00M
     Extra memory due to padding: 5.95G (128.0x expansion)
     XLA label: fusion.1858.remat4 = fusion(fusion.950.remat5.1, copy-done.29), kind=kOutput, calls=fused_computation.16
     Allocation type: HLO temp
     ==========================

  2. Size: 1.5G
     Shape: bf16[8,4]{1,0}
     Unpadded size: 1.5G
     XLA label: %copy.3 = bf16[8,4]{1,0} copy(bf16[8,4]{0,1} %p)
     Allocation type: HLO temp
     ==========================
"""
MODULE = """HloModule m, is_scheduled=true

fused {
  a = f32[16,32] parameter(0)
  ROOT b = f32[16,32] add(a, a)
}

ENTRY main {
  x = f32[16,32] parameter(0)
  w = f32[8,32] parameter(1)
  v = f32[8,32] parameter(2)
  f.1 = f32[16,32] fusion(x), kind=kLoop, calls=fused, metadata={op_name="jit(f)/jit(main)/mlp/sub"}
  f.2 = f32[16,32] fusion(f.1), kind=kLoop, calls=fused, metadata={op_name="jit(f)/jit(main)/mlp/add" source_file="net.py" source_line=45}
  c = f32[128] custom-call(w, v), custom_call_target="t"
  ROOT t = (f32[16,32], f32[128]) tuple(f.2, c)
}
"""


def test_blocks_are_read_with_what_was_requested() -> None:
    error = parse_out_of_memory(BLOCKS)
    assert error is not None
    assert error.requested == 6291456
    assert error.sorts == {"parameter": 6 << 20, "constant": 0, "output": 3 << 19, "temporary": 384 << 10}
    assert error.buffers == (
        PeakBuffer(2048, "f32[16,32]", "fusion", "jit(f)/jit(main)/mlp/add", "net.py:45"),
        PeakBuffer(1024, "f32[8,32]", sort="parameter"),
        PeakBuffer(512, "f32[128]", "custom-call"),
    )


def test_lists_are_read_with_names_and_padding() -> None:
    error = parse_out_of_memory(LIST)
    assert error is not None
    one, two = error.buffers
    assert (one.bytes, one.type, one.name, one.opcode, one.source) == (6 << 30, "u32[12582912,1]", "fusion.1858.remat4", "fusion", "w1.py:206")
    assert one.padding == round(5.95 * (1 << 30))
    assert (two.bytes, two.type, two.name, two.opcode, two.padding) == (3 << 29, "bf16[8,4]", "copy.3", "copy", 0)


@pytest.mark.parametrize("text", [BLOCKS, LIST])
def test_a_prefix_of_a_log_on_every_line_changes_nothing(text: str) -> None:
    prefixed = "\n".join(f"I0309 12:51:51.366992 140505975940928 run.py:247] {line.strip()}" for line in text.splitlines())
    assert parse_out_of_memory("first line\n" + prefixed) == parse_out_of_memory(text)


@pytest.mark.parametrize("text", ["", "Size: 4B", "out of memory", "Peak buffers: none", BLOCKS[:400], "Peak buffers:\nBuffer 1:\nSize: 1.2.3KiB\n"])
def test_texts_without_or_with_half_an_error_are_no_fault(text: str) -> None:
    error = parse_out_of_memory(text)
    assert error is None or all(buffer.bytes is None for buffer in error.buffers)


@pytest.mark.parametrize("size", ["", "1.2.3KiB", "9" * 400, "many"])
def test_sizes_that_are_not_stated_are_not_zero(size: str, cli: Cli, tmp_path: Path) -> None:
    lines = [f"Out of memory while trying to allocate {size} bytes.", "Peak buffers:", "Buffer 1:", f"Size: {size}", "Shape: f32[128]"]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    (tmp_path / "m.hlo").write_text(MODULE)
    record = json.loads(cli("show", tmp_path / "train.log", "--format", "json").stdout)["memory"]
    assert (record["total"], record["requested"], record["largest"][0]["bytes"]) == (None, None, None)
    assert cli("show", tmp_path / "train.log").stdout.split("\n")[2].split() == ["?", "f32[128]"]
    found = cli("lint", tmp_path / "m.hlo", "--oom", tmp_path / "train.log").stdout
    assert "XLA ran out of memory; 1 of its 1" in found and "?" in found


@pytest.mark.parametrize("line", ["=" * 100_000 + "x", "XLA Label: = " + "a" * 100_000])
def test_long_lines_take_linear_time(line: str) -> None:
    with within(5):
        error = parse_out_of_memory(f"Peak buffers:\nBuffer 1:\nSize: 1B\n{line}\n")
    assert error is not None and error.buffers[0].opcode == ""


def test_buffers_are_found_by_op_name_type_and_name() -> None:
    error = parse_out_of_memory(BLOCKS.replace("custom-call", "%c = f32[128] custom-call(%w, %v)"))
    assert error is not None
    table = peak_buffers(api.load(MODULE).module(), error)
    assert [(row[1], row[3]) for row in table.rows] == [("%f.2", "op_name"), ("%w or 1 like it", "type"), ("%c", "name")]
    assert table.title.endswith("3 of its 3 largest buffers are found in this text")


def test_a_type_that_two_values_have_is_not_enough() -> None:
    error = parse_out_of_memory(BLOCKS.replace("mlp/add", "elsewhere"))
    assert error is not None
    table = peak_buffers(api.load(MODULE).module(), error)
    assert [row[1] for row in table.rows] == ["not in this text", "%w or 1 like it", "%c"]
    assert any("after_optimizations" in note for note in table.notes)


def test_show_and_lint_take_the_log(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(BLOCKS)
    (tmp_path / "m.hlo").write_text(MODULE)
    shown = cli("show", tmp_path / "train.log")
    assert shown.exit_code == 0
    assert "out of memory" in shown.stdout and "jit(f)/jit(main)/mlp/add net.py:45" in shown.stdout
    record = json.loads(cli("show", tmp_path / "train.log", "--format", "json").stdout)
    assert record["memory"]["requested"] == 6291456 and record["memory"]["largest"][0]["op_name"] == "jit(f)/jit(main)/mlp/add"
    found = cli("lint", tmp_path / "m.hlo", "--oom", tmp_path / "train.log")
    assert found.exit_code == 0 and "%f.2" in found.stdout and "op_name" in found.stdout


@pytest.mark.parametrize(("arguments", "words"), [
    (["--audit", "dtype", "--oom", "train.log"], "--oom belongs to --audit memory"),
    (["--oom", "m.hlo"], "has no out-of-memory error of XLA that lists buffers"),
    (["--oom", "none.log"], "none.log: no such file"),
])
def test_what_is_no_such_log_is_refused(arguments: list[str], words: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.log").write_text(BLOCKS)
    (tmp_path / "m.hlo").write_text(MODULE)
    result = cli("lint", "m.hlo", *arguments)
    assert result.exit_code == 2 and words in result.stderr
