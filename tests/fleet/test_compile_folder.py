"""Folders that torch.compile wrote: graphs, stages, kernels with their nodes, and what logs and traces beside them say."""
from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from irscope.fleet.compile_record import read_record
from irscope.fleet.dump_folder import read_folder
from irscope.graph import bytes_of
from tests.conftest import Cli

DATA = Path(__file__).resolve().parents[1] / "data" / "inductor"
FOLDER = DATA / "torch_compile_debug"


def test_each_graph_is_a_module_with_its_stages() -> None:
    folder = read_folder(str(FOLDER))
    assert [m.title for m in folder.modules] == ["model__0_forward_1.0", "model__0_backward_3.1", "model__5_inference_8.6"]
    names = [stage.name for stage in folder.modules[0].stages]
    assert names[-3:] == ["IR before fusion", "IR after fusion", "output code"]
    assert {m.rank for m in folder.modules} == {""}


def test_kernels_hold_the_scheduler_nodes_that_they_compute() -> None:
    record = read_record(read_folder(str(FOLDER)))
    assert record is not None
    graph = record.graphs["model__0_forward_1.0"]
    assert not graph.faults
    ops = [op for kernel in graph.kernels for op in kernel.ops]
    assert sorted(ops) == sorted(op for node in graph.after for op in node.ops())
    generated = next(k for k in graph.kernels if k.kind == "fused")
    assert generated.nodes and generated.source is not None and generated.source.language == "C++"
    assert any(k.call.kernel == "extern_kernels.addmm" and k.buffers for k in graph.kernels)


def test_saved_tensors_are_what_the_backward_graph_takes() -> None:
    record = read_record(read_folder(str(FOLDER)))
    assert record is not None
    saved = {t.name: t for t in record.graphs["model__0_backward_3.1"].saved}
    assert not any(name.startswith("tangents") for name in saved)
    assert saved["primals_3"].is_input and not saved["addmm"].is_input
    assert sum(bytes_of(tensor.type) for tensor in saved.values() if not tensor.is_input) > 8 * 32 * 4


def test_logs_and_traces_beside_the_folder_belong_to_it() -> None:
    record = read_record(read_folder(str(FOLDER)))
    assert record is not None
    assert {Path(file).name for file in record.files} == {"torch_logs.txt", "torch_trace.log.gz"}
    assert record.refusals and all(r.reason for r in record.refusals)
    compiled = {c.compile_id: c for c in record.compilations}
    assert compiled["1/1"].recompiles and compiled["1/0"].breaks and compiled["0/0"].seconds


def test_show_tells_the_record(cli: Cli) -> None:
    shown = cli("show", str(FOLDER), "--module", "model__0_forward_1.0")
    assert shown.exit_code == 0
    for words in ("IR after fusion", "as Inductor recorded them", "not fused", "saved for backward", "graph break at", "recompiled:"):
        assert words in shown.stdout, words


def test_json_has_kernels_groups_and_refusals(cli: Cli) -> None:
    said = json.loads(cli("show", str(FOLDER), "--format", "json").stdout)
    assert {k["graph"] for k in said["kernels"]} == set(said["groups"])
    assert {"a", "b", "reason"} == set(said["refusals"][0])
    assert any(c["recompiles"] for c in said["compilations"])


def test_ranks_are_folders_of_processes(tmp_path: Path) -> None:
    for pid in (1, 2):
        shutil.copytree(FOLDER / "run_1-pid_1", tmp_path / "torch_compile_debug" / f"run_1-pid_{pid}")
    folder = read_folder(str(tmp_path))
    assert {m.rank for m in folder.modules} == {"run_1-pid_1", "run_1-pid_2"}
    record = read_record(folder)
    assert record is not None and len(record.graphs) == 6


def test_a_folder_of_traces_alone(tmp_path: Path, cli: Cli) -> None:
    for rank in (0, 1):
        shutil.copy(DATA / "torch_trace.log.gz", tmp_path / f"dedicated_log_torch_trace_rank_{rank}_x.log.gz")
    shown = cli("show", str(tmp_path))
    assert shown.exit_code == 0 and "[0/0] forward" in shown.stdout and "graph break at" in shown.stdout


@pytest.mark.parametrize("name", ["ir_post_fusion.txt", "output_code.py"])
def test_damaged_files_are_told_and_the_others_used(tmp_path: Path, cli: Cli, name: str) -> None:
    shutil.copytree(DATA, tmp_path / "d")
    (file,) = tmp_path.glob(f"d/torch_compile_debug/*/*/model__0_forward_1.0/{name}")
    file.write_text(file.read_text()[:1500])
    shown = cli("show", str(tmp_path / "d" / "torch_compile_debug"))
    assert shown.exit_code in (0, 2) and "Traceback" not in shown.output
    assert "the text ends" in shown.stdout
