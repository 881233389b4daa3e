"""What cannot run here is refused by name: arrays that no memory holds, targets without object files, results of another precision."""
from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Cli

HUGE = "ENTRY e {\n  p = f32[4294967296,4294967296,4294967296] parameter(0)\n  ROOT n = f32[4294967296,4294967296,4294967296] negate(p)\n}\n"
GROWN = "ENTRY e {\n  p = f32[] parameter(0)\n  b = f32[4294967296,4294967296] broadcast(p), dimensions={}\n" \
        "  c = f32[] constant(0)\n  ROOT r = f32[] reduce(b, c), dimensions={0,1}, to_apply=s\n}\n"
SUM = "s {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] add(x, y)\n}\n\n"
NARROW = "ENTRY e {\n  a = f32[4,4] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f8e4m3fn[6,6] pad(a, b), padding=1_1x1_1\n}\n"
CHOOSING = """a {
  p = f32[] parameter(0)
  ROOT t = (f32[], f32[]) tuple(p, p)
}

chosen {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  lt = pred[] compare(x, y), direction=LT
  c = (f32[], f32[]) conditional(lt, x, y), true_computation=a, false_computation=a
  ROOT g = f32[] get-tuple-element(c), index=1
}

ENTRY e {
  v = f32[9] parameter(0)
  ROOT m = f32[9] map(v, v), dimensions={0}, to_apply=chosen
}
"""


def plain(sizes: list[int]) -> str:
    """A negation of an array of these sizes."""
    type = f"f32[{','.join(map(str, sizes))}]"
    return f"ENTRY e {{\n  p = {type} parameter(0)\n  ROOT r = {type} negate(p)\n}}\n"


@pytest.mark.parametrize(("text", "further", "words"), [
    (HUGE, (), ("%p", "f32[4294967296,4294967296,4294967296]", "316,912,650,057,057,350,374,175,801,344 bytes")),
    (HUGE, ("--emit", "llvm"), ("%p", "no memory holds it")),
    (SUM + GROWN, (), ("%b", "f32[4294967296,4294967296]", "73,786,976,294,838,206,464 bytes")),
    (plain(65 * [1]), (), ("%p", "arrays have at most 60 dimensions here")),
    (plain([0, 1 << 62, 1 << 62]), (), ("%p", "sizes whose product is no 64-bit number")),
    (plain([0, 1 << 62, 1 << 62]), ("--engine", "reference"), ("%p", "sizes whose product is no 64-bit number")),
    (NARROW, (), ("%r", "it gives f8e4m3fn[6,6] of f32[4,4], f32[]", "convert that")),
    (CHOOSING, (), ("%c", "it is in chosen, which runs once per element")),
], ids=["huge", "huge llvm", "grown", "dimensions", "zero times huge", "reference of zero times huge", "precision", "conditional in map"])
def test_what_cannot_run_is_refused_by_name(text: str, further: tuple[str, ...], words: tuple[str, ...], cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(text)
    said = cli("compile-and-run", tmp_path / "m.hlo", *further)
    from irscope.source import UserError

    assert isinstance(said.exception, UserError) or said.exit_code == 2, said.output
    told = said.exception.render() if isinstance(said.exception, UserError) else said.stderr
    assert all(word in told for word in words), told
    for command in ("show", "stats", "lint"):
        assert cli(command, tmp_path / "m.hlo").exit_code in (0, 1)


def test_an_unsupported_target_is_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text("ENTRY e {\n  p = f32[4] parameter(0)\n  ROOT n = f32[4] negate(p)\n}\n")
    said = cli("compile-and-run", tmp_path / "m.hlo", "--emit", "obj", "--target", "nvptx64", "-o", tmp_path / "m.o")
    assert said.exit_code == 2 and "no code for nvptx64" in said.stderr and not (tmp_path / "m.o").exists()


def test_json_of_calls_3000_deep(cli: Cli, tmp_path: Path) -> None:
    import json

    graphs = ["c0 {\n  p = f32[] parameter(0)\n  ROOT n = f32[] negate(p)\n}\n"]
    graphs += [f"c{i} {{\n  p = f32[] parameter(0)\n  ROOT n = f32[] call(p), to_apply=c{i - 1}\n}}\n" for i in range(1, 3000)]
    (tmp_path / "m.hlo").write_text("\n".join(graphs) + "\nENTRY e {\n  p = f32[] parameter(0)\n  ROOT n = f32[] call(p), to_apply=c2999\n}\n")
    said = cli("show", tmp_path / "m.hlo", "--format", "json")
    assert said.exit_code == 0 and said.stdout.count('"children"') > 1000
    with pytest.raises(RecursionError):  # Python's own reader is less patient than the file is deep
        json.loads(said.stdout)


def test_rows_beyond_the_arrays_go_to_the_edge_in_both_engines(cli: Cli, tmp_path: Path) -> None:
    import numpy as np

    lines = "\n".join(f"  {name} = s32[2] parameter({i})" for i, name in enumerate(("starts", "lengths", "targets", "taken"), 2))
    text = f"ENTRY e {{\n  given = f32[3] parameter(0)\n  out = f32[4] parameter(1)\n{lines}\n" \
           "  ROOT r = f32[4] ragged-all-to-all(given, out, starts, lengths, targets, taken), replica_groups={{0}}\n}\n"
    (tmp_path / "m.hlo").write_text(text)
    numbers = [np.array(value, np.int32) for value in ([-5, 2], [2, 9], [1, 3], [0, 0])]
    np.savez(tmp_path / "i.npz", arg0=np.arange(1, 4, dtype=np.float32), arg1=np.zeros(4, np.float32),
             arg2=numbers[0], arg3=numbers[1], arg4=numbers[2], arg5=numbers[3])
    said = cli("compile-and-run", tmp_path / "m.hlo", "--inputs", tmp_path / "i.npz", "--check")
    assert said.exit_code == 0, said.output
