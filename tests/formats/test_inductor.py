"""Texts of TorchInductor: IR before and after fusion, output code, traces and logs."""
from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from irscope.fleet.stats import stats_of_file
from irscope.formats.detect import detect, read
from irscope.formats.inductor.attributes import Called, Scheduled
from irscope.formats.inductor.compilation import Compiled
from irscope.formats.inductor.dependencies import parse_dependencies
from irscope.formats.inductor.kernels import triton_source
from irscope.formats.inductor.layouts import parse_layout
from irscope.formats.inductor.log_sections import read_log
from irscope.graph import Node, Reading
from irscope.source import SourceText
from irscope.source.budget import limits
from tests.conftest import Cli

DATA = Path(__file__).resolve().parents[1] / "data" / "inductor"
RUN = DATA / "torch_compile_debug" / "run_1-pid_1" / "torchinductor"
FORWARD = RUN / "model__0_forward_1.0"


def reading(path: Path) -> Reading:
    data = path.read_bytes()
    return read(SourceText(path.name, (gzip.decompress(data) if path.suffix == ".gz" else data).decode()))


def written(found: Reading) -> list[Node]:
    return list(found.module().main().shown())


# ---------------------------------------------------------------- IR

def test_ir_after_fusion_has_the_nodes_that_became_one() -> None:
    found = reading(FORWARD / "ir_post_fusion.txt")
    assert found.ok and not found.findings
    nodes = written(found)
    assert [n.name for n in nodes if "_" in n.name] and len(nodes) < len(written(reading(FORWARD / "ir_pre_fusion.txt")))
    fused = next(n for n in nodes if "_" in n.name)
    assert Scheduled.of(fused).parts == tuple(fused.name.split("_"))
    assert {n.op.name for n in nodes} >= {"extern_kernels.addmm", "SchedulerNode"}


def test_dependencies_are_edges_and_layouts_are_types() -> None:
    nodes = {n.name: n for n in written(reading(FORWARD / "ir_pre_fusion.txt"))}
    product = next(n for n in nodes.values() if n.op.name == "extern_kernels.addmm")
    assert str(product.type) == "f32[8,32]"
    users = [n for n in nodes.values() if product in n.operands]
    assert users and all(Scheduled.of(u).scheduler.body is not None for u in users)


IR = """op0: SchedulerNode(ComputedBuffer)
op0.writes = [MemoryDep('buf0', c0, {c0: 6})]
op0.unmet_dependencies = []
op0.met_dependencies = [MemoryDep('arg0_1', c0, {c0: 6})]
op0.min_input_distance = 0
op0.max_input_distance = 0
op0.outputs = [
    buf0: ComputedBuffer
    buf0.layout = FixedLayout('cuda:0', torch.float16, size=[2, 3], stride=[1, 2])
    buf0.users = [NodeUser(node=OUTPUT, can_inplace=False, is_weak=False)]
]
op0.group.device = cuda:0
op0.group.iteration = (6, 1)
op0.sizes = ([6], [])
arg0_1_layout = FixedLayout('cuda:0', torch.float16, size=[2, 3], stride=[1, 2])
buf0_layout = FixedLayout('cuda:0', torch.float16, size=[2, 3], stride=[1, 2])
class op0_loop_body:
    var_ranges = {p0: 6}
    index0 = p0
    def body(self, ops):
        get_index = self.get_index('index0')
        load = ops.load('arg0_1', get_index)
        relu = ops.relu(load)
        get_index_1 = self.get_index('index0')
        store = ops.store('buf0', get_index_1, relu, None)
        return store
op0 Triton code:
    @triton.jit
    def triton_(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
        pass


"""


def test_ir_of_a_gpu_with_its_triton_code() -> None:
    found = read(SourceText("ir_pre_fusion.txt", IR))
    assert found.ok and not found.findings
    (node,) = written(found)
    record = Scheduled.of(node).scheduler
    assert str(node.type) == "f16[2,3]{0,1}" and record.device == "cuda:0"
    assert record.body is not None and record.body.kind == "pointwise" and record.flops() == 6
    assert record.device_code.startswith("    @triton.jit")


@pytest.mark.parametrize(("cut", "words"), [
    ("        relu = ops.re", "ends inside the loop body of op0"),
    ("        get_index_1 = self", "ends inside the loop body of op0"),
    ("    var_ranges", "ends inside the loop body of op0"),
    ("op0.group.device", "cut off"),
    ("    buf0.users", "ends inside the outputs of op0"),
    ("op0.unmet", "the text ends inside its entry"),
])
def test_ir_that_is_cut_is_refused(cut: str, words: str) -> None:
    text = IR[:IR.index(cut) + len(cut) - 4] if cut.startswith("     ") else IR[:IR.index(cut)]
    found = read(SourceText("ir_post_fusion.txt", text), "inductor")
    assert not found.ok
    assert any(words in finding.message for finding in found.findings), [finding.message for finding in found.findings]


def test_a_buffer_that_nothing_writes_is_a_warning() -> None:
    found = read(SourceText("ir.txt", IR.replace("unmet_dependencies = []", "unmet_dependencies = [MemoryDep('buf7', c0, {c0: 6})]")))
    assert found.ok and "buf7" in found.findings[0].message


@pytest.mark.parametrize(("text", "expected"), [
    ("MemoryDep('buf2', c1 + 5*tmp0, {c0: 9, c1: 5}, atomic_add)", ("buf2", "c1 + 5*tmp0", "c0: 9, c1: 5", "atomic_add")),
    ("MemoryDep('arg2_1', ModularIndexing(c1, 1, 4), {c0: 64, c1: 8})", ("arg2_1", "ModularIndexing(c1, 1, 4)", "c0: 64, c1: 8", "")),
    ("MemoryDep('buf4', tmp0, {}, atomic_add)", ("buf4", "tmp0", "", "atomic_add")),
    ("StarDep(name='buf1', mode=None)", ("buf1", "", "", "")),
    ("WeakDep(name='buf0', mutating_buf='buf3', is_fake=True)", ("buf0", "", "", "")),
])
def test_dependencies(text: str, expected: tuple[str, str, str, str]) -> None:
    (found,) = parse_dependencies(f"[{text}]")
    assert (found.buffer, found.index, found.ranges, found.mode) == expected


def test_layouts_with_symbolic_sizes() -> None:
    layout = parse_layout("FixedLayout('cpu', torch.float32, size=[s77, 2*s0 + 1], stride=[2*s0 + 1, 1], offset=4)")
    assert layout is not None and str(layout.type()) == "f32[s77,2 * s0 + 1]" and layout.offset == "4"
    several = parse_layout("MultiOutputLayout(device=device(type='cuda', index=1))")
    assert several is not None and several.device == "cuda:1"
    assert parse_layout("FixedLayout('cpu', torch.float32, size=[") is None


# ---------------------------------------------------------------- output code

def test_output_code_has_the_calls_of_kernels() -> None:
    found = reading(FORWARD / "output_code.py")
    assert found.ok
    nodes = written(found)
    assert [n.op.name for n in nodes].count("extern_kernels.addmm") == 2
    generated = next(n for n in nodes if n.op.name.startswith("cpp_fused"))
    source = Called.of(generated).source
    assert source is not None and source.language == "C++" and source.written
    assert found.module().main().params and found.module().attrs["aot_id"] == "0_forward"


def test_fallbacks_with_several_results_are_one_call() -> None:
    found = reading(RUN / "model__5_inference_8.6" / "output_code.py")
    names = [n.op.name for n in written(found)]
    assert "torch.ops.aten.topk.default" in names and "torch.ops.aten.cumsum.default" in names


TRITON = '''# AOT ID: ['0_inference']
import torch
from torch._inductor.async_compile import AsyncCompile
async_compile = AsyncCompile()

triton_poi_fused_add_relu_0 = async_compile.triton('triton_poi_fused_add_relu_0', \'\'\'
import triton
import triton.language as tl

@triton_heuristics.pointwise(
    size_hints={'x': 256},
    filename=__file__,
    triton_meta={'signature': {'in_ptr0': '*fp32'}},
    inductor_meta={'grid_type': 'Grid1D', 'mutated_arg_names': []},
    min_elem_per_thread=0
)
@triton.jit
def triton_poi_fused_add_relu_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 256
\'\'\', device_str='cuda')

triton_tem_fused_mm_1 = async_compile.triton('triton_tem_fused_mm_1', \'\'\'
@triton_heuristics.template(num_stages=3, num_warps=8, triton_meta={}, inductor_meta={'grid_type': 'FixedGrid'})
@triton.jit
def triton_tem_fused_mm_1(arg_A, arg_B, out_ptr0):
    pass
\'\'\', device_str='cuda')

async_compile.wait(globals())

def call(args):
    arg0_1, arg1_1 = args
    args.clear()
    with torch.cuda._DeviceGuard(0):
        torch.cuda.set_device(0)
        buf0 = empty_strided_cuda((16, 16), (16, 1), torch.float32)
        # Topologically Sorted Source Nodes: [add, relu], Original ATen: [aten.add, aten.relu]
        # [Provenance debug handles] triton_poi_fused_add_relu_0:1
        stream0 = get_raw_stream(0)
        triton_poi_fused_add_relu_0.run(arg0_1, buf0, 256, stream=stream0)
        buf1 = empty_strided_cuda((16, 16), (16, 1), torch.float32)
        stream0 = get_raw_stream(0)
        triton_tem_fused_mm_1.run(buf0, arg1_1, buf1, grid=torch._inductor.kernel.mm_common.mm_grid(16, 16, meta0), stream=stream0)
        buf2 = buf0; del buf0  # reuse
        extern_kernels.mm(buf1, reinterpret_tensor(arg1_1, (16, 16), (1, 16), 0), out=buf2)
    return (buf2, )
'''


def test_output_code_of_a_gpu() -> None:
    found = read(SourceText("output_code.py", TRITON))
    assert found.ok, [f.message for f in found.findings]
    first, second, third = written(found)
    assert Called.of(first).handle == "triton_poi_fused_add_relu_0:1"
    source, template = Called.of(first).source, Called.of(second).source
    assert source is not None and (source.template, source.grid, source.num_warps) == ("pointwise", "Grid1D", "")
    assert template is not None and (template.template, template.num_warps, template.num_stages) == ("template", "8", "3")
    assert first in second.operands and second in third.operands
    assert found.module().main().notes["reuse"] == (("buf2", "buf0"),)
    assert third.op.cost is not None and third.op.cost(third) == 2 * 16 ** 3


def test_a_call_without_comments_has_none_of_its_neighbours() -> None:
    text = TRITON.replace("        extern_kernels.mm(", "        # [Provenance debug handles] extern_kernels.mm:3\n        extern_kernels.mm(")
    first, second, third = written(read(SourceText("output_code.py", text)))
    assert Called.of(second).handle == "" and Called.of(third).handle == "extern_kernels.mm:3"
    assert first.attrs["source_nodes"] == ("add", "relu") and "source_nodes" not in third.attrs


def test_partitions_and_branches_are_graphs_of_their_own() -> None:
    text = TRITON.replace("def call(args):", "def partition_0(args):") + """
class Runner:
    def __init__(self, partitions):
        self.partitions = partitions

    def call(self, args):
        arg0_1, arg1_1 = args
        partition0_args = [arg0_1, arg1_1]
        (buf2,) = self.partitions[0](partition0_args)
        return (buf2, )
"""
    found = read(SourceText("output_code.py", text))
    assert found.ok and set(found.module().graphs) == {"call", "partition_0"}
    assert len(list(found.module().graphs["partition_0"].shown())) == 3


def test_output_code_that_is_cut_is_refused() -> None:
    found = read(SourceText("output_code.py", TRITON[:TRITON.index("@triton.jit")]))
    assert not found.ok and "ends too early" in found.findings[0].message
    found = read(SourceText("output_code.py", TRITON[:TRITON.index("def call")]))
    assert not found.ok and "no function call" in found.findings[0].message


def test_triton_text_that_is_no_python_leaves_the_launch_unknown() -> None:
    assert str(triton_source("k", "@triton.jit\ndef k(")) == "Triton"


# ---------------------------------------------------------------- traces

def test_a_trace_has_compilations_with_breaks_recompiles_and_times() -> None:
    found = reading(DATA / "torch_trace.log.gz")
    assert found.ok
    compilations = {c.compile_id: c for m in found.modules if (c := Compiled.of(m).compilation) is not None}
    assert compilations["0/0"].function == "forward" and compilations["0/0"].seconds["all"] > 0
    assert "output code" in [s.name for s in compilations["0/0"].stages]
    (broken,) = compilations["1/0"].breaks
    assert broken.place.endswith("lab.py:16") and "torch._dynamo.graph_break()" in broken.reason
    (again,) = compilations["1/1"].recompiles
    assert again.reasons == ("1/0: tensor 'a' size mismatch at index 0. expected 4, actual 5",)


def record(payload: str, md5: str = "") -> str:
    digest = md5 or hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest()
    body = "".join(f"\t{line}\n" for line in payload.split("\n"))
    return (f'V1122 13:53:02.383000 8077 torch/x.py:1] {{"aot_inference_graph": {{}}, "rank": 3, "frame_id": 0, "frame_compile_id": 0, '
            f'"attempt": 0, "has_payload": "{digest}"}}\n{body}')


@pytest.mark.parametrize(("text", "words"), [
    (record("a\nb", "0" * 32), "MD5"),
    (record("a") + 'V1122 13:53:02.383000 8077 torch/x.py:1] {"cut', "not JSON"),
    (record("a") + "Segmentation fault\n", "no record"),
    (record("a") + 'V1122 13:53:02.383000 8077 torch/x.py:1] {"str": 3}\n', "is not a string with a number"),
])
def test_damaged_records_are_findings_and_the_others_are_read(text: str, words: str) -> None:
    found = read(SourceText("trace.log", text))
    assert found.ok and any(words in f.message for f in found.findings)
    compilation = Compiled.of(found.module()).compilation
    assert compilation is not None and compilation.rank == "rank3" and compilation.stages


def test_a_trace_without_a_record_is_refused() -> None:
    assert not read(SourceText("trace.log", 'V1122 13:53:02.383000 8077 torch/x.py:1] {"cut')).ok


# ---------------------------------------------------------------- logs

def test_a_log_has_refusals_in_the_words_of_inductor() -> None:
    log = read_log(SourceText("log", (DATA / "torch_logs.txt").read_text()))
    refusals = [d for run in log.runs for d in run.refusals()]
    assert refusals and all(d.reason and "scheduler.py:" in d.place for d in refusals)
    assert [c.breaks[0].place.rpartition("/")[2] for c in log.compilations.values() if c.breaks][:1] == ["lab.py:16"]
    assert any("size mismatch" in c.recompiles[0].reasons[0] for c in log.compilations.values() if c.recompiles)


def test_detection_and_statistics() -> None:
    assert detect((DATA / "torch_logs.txt").read_text()) == "inductor"
    assert detect(IR) == detect(TRITON) == "inductor"
    stats = stats_of_file(str(FORWARD / "ir_post_fusion.txt"))
    assert stats["ok"] and stats["nodes"] == len(written(reading(FORWARD / "ir_post_fusion.txt")))


@pytest.mark.parametrize("text", [
    IR.replace("[2, 3]", "[0x" + "f" * 6000 + "]"), TRITON.replace("buf2 = buf0", "buf2 = buf0[0x" + "f" * 6000 + "]"),
    record("a").replace("inference_graph\": {}", "inference_graph\": {\"x\": 1" + "0" * 400 + "}"), IR + "junk\n" * 40000,
    record("x").replace("aot_inference_graph\": {}", "compilation_metrics\": {\"entire_frame_compile_time_s\": 1" + "0" * 400 + "}"),
    "op0: SchedulerNode(" * 2000, IR.replace("relu(load)", "(" * 5000 + ")" * 5000), "MemoryDep('x', " * 20000,
    IR.replace("[2, 3]", "[" * 3000), TRITON.replace("(16, 1)", "-" * 9000 + "1"), IR.replace("p0: 6", "p0: " + "9" * 5000),
    IR.replace("op0.snodes", "").replace("class op0_loop_body:", "op0.snodes[0] =\nop0: FusedSchedulerNode(SchedulerNode)\nclass op0_loop_body:"),
])
def test_hostile_texts_are_findings(text: str) -> None:
    read(SourceText("x", text), "inductor")


def test_a_text_of_something_else_is_refused_in_words(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("hello\nworld\n")
    result = cli("lint", tmp_path / "x.txt", "--from", "inductor")
    assert result.exit_code == 2
    assert "no scheduler node, kernel call or compilation" in result.stdout


# ---------------------------------------------------------------- logs of several processes, and lines that repeat their words

def test_lines_of_several_ranks_in_one_log_are_kept_apart() -> None:
    said = ["===== attempting fusion (1/10): 2 nodes =====", "fuse_nodes_once, candidates:", "  ExternKernelSchedulerNode(name='op{}')",
            "cannot fuse op{} with op9: no shared data"]
    prefix = "[rank{0}]:V1122 13:54:20.592000 8083 torch/x.py:20] [0/0] [__{1}] {2}\n"
    text = "".join(prefix.format(rank, "fusion", line.format(rank)) for line in said for rank in (0, 1))
    text += "".join(prefix.format(rank, "graph_breaks", line) for line in ("Graph break in user code at m.py:{}", "Reason: print {}")
                    for rank in (0, 1)).replace("{}", "7")
    log = read_log(SourceText("log", text))
    assert [(run.rank, [c.name for c in run.candidates], [d.a for d in run.decisions]) for run in log.runs] == [
        ("rank0", ["op0"], ["op0"]), ("rank1", ["op1"], ["op1"])]
    assert [(s.rank, s.text) for s in log.sections] == [(r, "Graph break in user code at m.py:7\nReason: print 7") for r in ("rank0", "rank1")]
    made = read(SourceText("log", text))
    assert [Compiled.of(module).compilation.rank for module in made.modules] == ["rank0", "rank1"]  # type: ignore[union-attr]


def test_a_graph_break_that_repeats_its_words_is_read_in_linear_time() -> None:
    line = "V1122 13:54:20.592000 8083 torch/x.py:20] [0/0] [__graph_breaks] " + "Graph break in user code at x " * 20_000
    with limits(seconds=3):
        log = read_log(SourceText("log", line))
    assert [found.place for c in log.compilations.values() for found in c.breaks] == [""]
