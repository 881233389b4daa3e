"""``lint --why-not-fused`` on what Inductor recorded: kernels after fusion, and refusals in the words of its log."""
from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli

DATA = Path(__file__).resolve().parents[1] / "data" / "inductor"
FOLDER = DATA / "torch_compile_debug"
FORWARD = FOLDER / "run_1-pid_1" / "torchinductor" / "model__0_forward_1.0"


def edges(cli: Cli, *args: str) -> list[dict[str, Any]]:
    said = json.loads(cli("lint", *args, "--why-not-fused", "--format", "json").stdout)
    return [edge for file in said["files"] for edge in file["edges"]]


def test_the_kernels_of_the_text_after_fusion_are_the_verdicts(cli: Cli) -> None:
    found = edges(cli, str(FORWARD / "ir_pre_fusion.txt"))
    assert found and all(edge["recorded"] for edge in found)
    fused = {(e["producer"], e["consumer"]) for e in found if e["fused"] == "all"}
    assert ("op0", "op1") in fused
    apart = next(e for e in found if e["rule"] == "extern-kernel")
    assert apart["reason"] is None and "addmm" in apart["cause"]


def test_a_folder_gives_its_graphs_alone(cli: Cli) -> None:
    said = json.loads(cli("lint", str(FOLDER), "--why-not-fused", "--format", "json").stdout)
    assert {Path(file["file"]).name for file in said["files"]} == {"ir_pre_fusion.txt"} and len(said["files"]) == 3
    assert all("recorded, not predicted" in file["remarks"][0] for file in said["files"])


LOG = """V1123 07:15:05.941000 1 torch/_inductor/scheduler.py:4995] [0/0] [__fusion] ===== attempting fusion (1/10): 2 nodes =====
V1123 07:15:05.941000 1 torch/_inductor/scheduler.py:5993] [0/0] [__fusion] fuse_nodes_once, candidates:
V1123 07:15:05.941000 1 torch/_inductor/scheduler.py:5995] [0/0] [__fusion]   SchedulerNode(name='op0'), Pointwise(['[6]', \
'origins=OrderedSet([relu])', 'stack_traces = {', '  File "net.py", line 12, in f'
V1123 07:15:05.941000 1 torch/_inductor/scheduler.py:5995] [0/0] [__fusion]   SchedulerNode(name='op1'), Pointwise(['[6]', \
'origins=OrderedSet([exp])', 'stack_traces = {', '  File "net.py", line 14, in f'
V1123 07:15:05.942000 1 torch/_inductor/scheduler.py:2059] [0/0] [__fusion] cannot fuse op0 with op1: memory deps did not match
"""


def node(name: str, reads: str, writes: str) -> str:
    return f"""{name}: SchedulerNode(ComputedBuffer)
{name}.writes = [MemoryDep('{writes}', c0, {{c0: 6}})]
{name}.unmet_dependencies = [MemoryDep('{reads}', c0, {{c0: 6}})]
{name}.met_dependencies = []
{name}.outputs = [
    {writes}: ComputedBuffer
    {writes}.layout = FixedLayout('cpu', torch.float32, size=[6], stride=[1])
    {writes}.users = [NodeUser(node=OUTPUT, can_inplace=False, is_weak=False)]
]
{name}.sizes = ([6], [])


"""


@pytest.mark.parametrize("by_option", [False, True])
def test_refusals_are_those_of_the_log_with_rule_and_lines(tmp_path: Path, cli: Cli, by_option: bool) -> None:
    text, log = tmp_path / "ir_pre_fusion.txt", tmp_path / ("elsewhere" if by_option else ".") / "torch_logs.txt"
    log.parent.mkdir(exist_ok=True)
    text.write_text(node("op0", "arg0_1", "buf0").replace("unmet", "x", 0) + node("op1", "buf0", "buf1"))
    log.write_text(LOG)
    (edge,) = edges(cli, str(text), *(["--fusion-log", str(log)] if by_option else []))
    assert (edge["reason"], edge["rule"], edge["fused"], edge["recorded"]) == ("memory deps did not match", "index-mismatch", "none", True)
    if not by_option:
        assert edge["sources"] == ["net.py:12", "net.py:14"] and "scheduler.py:2059" in edge["cause"]


def test_the_text_after_fusion_has_edges_between_kernels(cli: Cli) -> None:
    found = edges(cli, str(FORWARD / "ir_post_fusion.txt"))
    assert found and all(edge["recorded"] and edge["fused"] == "none" for edge in found)


def test_a_refusal_of_a_part_holds_for_the_fused_node(tmp_path: Path, cli: Cli) -> None:
    text = (node("op0_op2", "arg0_1", "buf0").replace(": SchedulerNode(ComputedBuffer)", ": FusedSchedulerNode(SchedulerNode,SchedulerNode)")
            + "op0_op2.snodes[0] =\n" + node("op0", "arg0_1", "buf0") + "op0_op2.snodes[1] =\n" + node("op2", "arg0_1", "buf2")
            + node("op1", "buf0", "buf1"))
    (tmp_path / "ir_post_fusion.txt").write_text(text)
    listed = LOG.splitlines(keepends=True)
    log = "".join([*listed[:4], listed[3].replace("op1", "op2"), *listed[4:]])
    (tmp_path / "torch_logs.txt").write_text(log)
    (edge,) = edges(cli, str(tmp_path / "ir_post_fusion.txt"))
    assert (edge["producer"], edge["consumer"], edge["reason"]) == ("op0_op2", "op1", "memory deps did not match")


def test_without_a_record_the_folder_is_asked_for(tmp_path: Path, cli: Cli) -> None:
    shutil.copy(FORWARD / "ir_pre_fusion.txt", tmp_path / "ir.txt")
    said = cli("lint", str(tmp_path / "ir.txt"), "--why-not-fused")
    assert said.exit_code == 2 and "ir_post_fusion.txt" in said.output
