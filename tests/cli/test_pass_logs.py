"""Logs of passes: TVM's three instruments, and irscope's own ``--print-after``."""
from __future__ import annotations

from pathlib import Path

import pytest

import irscope
from irscope.query.snapshots import find, snapshots
from irscope.source import UserError
from tests.conftest import Cli

HEAD = "def @main(%x: Tensor[(4), float32]) -> Tensor[(4), float32] {\n"
TWO = HEAD + "  %0 = add(1f, 2f);\n  add(%x, %0)\n}\n"
ONE = HEAD + "  add(%x, 3f)\n}\n"
PRINT_IR = f"""[08:15:20] /tvm/src/ir/transform.cc:597: PrintIR(before FoldConstant):
#[version = "0.0.5"]
{TWO}

One or more operators have not been tuned. Please tune your model.
[08:15:21] /tvm/src/ir/transform.cc:597: PrintIR(after FoldConstant):
#[version = "0.0.5"]
{ONE}
done in 3 s
"""
META = "The meta data of the pass - pass name: {}, opt_level: 2, required passes: []"
BEFORE_ALL = f"""INFO:root:compiling
Before Running Pass: {META.format("FoldConstant")}

{TWO}
After Running Pass: {META.format("FoldConstant")}

{ONE}"""
PASS_INFO = f"""Before Running Pass: transform.PassInfo(opt_level=2, name="FoldConstant", required=(), traceable=False)
{TWO}After Running Pass: transform.PassInfo(opt_level=2, name="FoldConstant", required=(), traceable=False)
{ONE}"""
PRINTING = f"Print IR before: FoldConstant\n{TWO}\n\nPrint IR after: FoldConstant\n{ONE}\n\n"


@pytest.mark.parametrize("log", [PRINT_IR, BEFORE_ALL, PASS_INFO, PRINTING], ids=["PrintIR", "Running Pass", "PassInfo", "Print IR"])
def test_each_instrument_gives_snapshots(log: str) -> None:
    reading = irscope.load(log)
    assert reading.ok, [f.message for f in reading.findings]
    told = snapshots(reading)
    assert [(s.number, s.when, s.name) for s in told] == [(1, "before", "FoldConstant"), (2, "after", "FoldConstant")]
    assert dict(told[1].went) == {"add": 1} and not told[1].came


def test_the_terminal_lists_them_and_shows_the_last(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "build.log"
    path.write_text(PRINT_IR)
    shown = cli("show", path)
    assert shown.exit_code == 0
    assert "a log of passes, 2 snapshots" in shown.stdout and "1 before FoldConstant" in shown.stdout and "-1 add" in shown.stdout
    assert "Relay module after FoldConstant" in shown.stdout and "Relay module before" not in shown.stdout


def test_a_pass_is_picked_by_name_or_number_and_tells_what_it_changed(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "build.log"
    path.write_text(BEFORE_ALL)
    assert "1 before FoldConstant -> 2 after FoldConstant" in cli("show", path, "--pass", "FoldConstant").stdout
    assert "Relay module before FoldConstant" in cli("show", path, "--pass", 1).stdout
    assert "did you mean FoldConstant?" in cli("show", path, "--pass", "FoldConstants").stderr
    assert "they are 1 to 2" in cli("show", path, "--pass", 3).stderr


def test_what_a_pass_got_is_found_over_the_passes_inside_it() -> None:
    nested = "".join(f"Print IR {when}: {name}\n{text}\n\n" for when, name, text in [
        ("before", "sequential", TWO), ("before", "InferType", TWO), ("after", "InferType", TWO), ("after", "sequential", ONE)])
    told = snapshots(irscope.load(nested))
    base, shown = find(told, "sequential")
    assert base is not None and (base.number, shown.number) == (1, 4)


def test_a_log_of_modules_before_passes_alone() -> None:
    told = snapshots(irscope.load(f"Print IR before: FoldConstant\n{TWO}\n\nPrint IR before: FuseOps\n{ONE}\n"))
    base, shown = find(told, "FoldConstant")
    assert base is not None and (base.number, shown.number) == (1, 2)
    assert find(told, "FuseOps")[1].number == 2


@pytest.mark.parametrize("sample", ["conv_two_consumers.relay", "mlp.pre.hlo"])
def test_what_opt_prints_is_such_a_log(cli: Cli, samples: Path, tmp_path: Path, sample: str) -> None:
    done = cli("opt", samples / sample, "--passes", "simplify-algebra,share-equal,remove-dead", "--print-after", "all", "--print-before", "share-equal")
    path = tmp_path / "opt.log"
    path.write_text(done.stderr)
    told = snapshots(irscope.load(path))
    assert [s.words for s in told] == ["after simplify-algebra", "before share-equal", "after share-equal", "after remove-dead"]
    picked = cli("opt", path, "--pass", "share-equal", "--passes", "remove-dead")
    assert picked.exit_code == 0 and picked.stdout == done.stdout


def test_a_text_that_is_no_log_has_no_passes_to_pick(cli: Cli, samples: Path) -> None:
    assert snapshots(irscope.load(samples / "session.log")) == []
    assert "is no log of passes" in cli("show", samples / "dense.relay", "--pass", "fuse-ops").stderr
    with pytest.raises(UserError, match="no snapshot"):
        find([], "fuse-ops")
