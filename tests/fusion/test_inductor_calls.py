"""The kernels that the policy inductor calls: loops between two library calls are one, in the order of least memory."""
from __future__ import annotations

import json

from irscope.api import load
from irscope.fusion import Plan
from irscope.graph import Module
from irscope.lint.planned import Planned
from irscope.lint.reporters.json_ import as_dict
from irscope.lint.session import Options, Session
from tests.fusion.inductor_texts import graph, plan, tensor

X = {"x": tensor(8, 8), "y": tensor(4, 4)}


def kinds(made: Plan) -> str:
    """A letter for each call: e for an extern one, else the number of its loop nests."""
    assert made.calls is not None
    return "".join("e" if call.extern else str(call.nests) for call in made.calls)


def backward(lines: str, inputs: str, results: str) -> Module:
    """A graph for training, as torch.compile prints it."""
    reading = load(f"class GraphModule(torch.nn.Module):\n    def forward(self, {inputs}):\n"
                   + "".join(f"        {line.strip()}\n" for line in lines.strip().splitlines()) + f"        return ({results})\n")
    assert reading.ok, [f.message for f in reading.findings]
    return reading.module()


def test_loops_that_are_not_fused_are_still_one_kernel() -> None:
    made = plan(graph(X, "a = aten::relu(%x)\nb = aten::tanh(%y)", "a, b"))
    assert len(made.groups) == 2
    assert kinds(made) == "2"
    assert made.kernels() == 1


def test_a_library_call_ends_a_kernel() -> None:
    made = plan(graph(X, "a = aten::relu(%x)\nb = aten::mm(%a, %x)\nc = aten::tanh(%b)\nd = aten::mm(%c, %a)", "d"))
    assert kinds(made) == "1e1e"


def test_loops_run_on_the_side_where_they_take_less_memory() -> None:
    # The large value is not made before it is read: its loops move behind the product that does not read it.
    sizes = {"x": tensor(8, 8), "y": tensor(8, 4096)}
    made = plan(graph(sizes, "big = aten::tanh(%y)\na = aten::mm(%x, %x)\nb = aten::mm(%a, %a)\nc = aten::mm(%b, %big)", "c"))
    assert kinds(made) == "ee1e"


def test_several_results_of_one_call_are_no_calls() -> None:
    module = backward("""
        sort = torch.ops.aten.sort.default(arg0_1)
        getitem: "f32[8, 8]" = sort[0]
        getitem_1: "i64[8, 8]" = sort[1];  sort = None
        add: "f32[8, 8]" = torch.ops.aten.add.Tensor(getitem, 1.0);  getitem = None
    """, 'arg0_1: "f32[8, 8]"', "add, getitem_1")
    assert kinds(Planned(module, "inductor").plans[-1]) == "e1"


def test_gradients_of_a_convolution_are_one_call() -> None:
    module = backward("""
        convolution_backward = torch.ops.aten.convolution_backward.default(tangents_1, relu, primals_2, [8], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True])
        getitem: "f32[2, 4, 8, 8]" = convolution_backward[0]
        getitem_1: "f32[8, 4, 3, 3]" = convolution_backward[1]
        getitem_2: "f32[8]" = convolution_backward[2];  convolution_backward = None
        mul: "f32[2, 4, 8, 8]" = torch.ops.aten.mul.Tensor(getitem, relu);  getitem = relu = None
    """, 'primals_2: "f32[8, 4, 3, 3]", relu: "f32[2, 4, 8, 8]", tangents_1: "f32[2, 8, 8, 8]"', "mul, getitem_1, getitem_2")
    made = Planned(module, "inductor").plans[-1]
    assert made.calls is not None
    assert sum(call.extern for call in made.calls) == 1


def test_a_graph_for_training_keeps_its_order() -> None:
    # For inference the sum would move to the end, behind the product.
    module = backward("""
        sum_1: "f32[1, 64]" = torch.ops.aten.sum.dim_IntList(tangents_1, [0], True)
        view: "f32[64]" = torch.ops.aten.reshape.default(sum_1, [64]);  sum_1 = None
        mul: "f32[32, 64]" = torch.ops.aten.mul.Tensor(tangents_1, 2.0);  tangents_1 = None
        mm: "f32[32, 16]" = torch.ops.aten.mm.default(mul, primals_1);  mul = primals_1 = None
    """, 'primals_1: "f32[64, 16]", tangents_1: "f32[32, 64]"', "view, mm")
    assert kinds(Planned(module, "inductor").plans[-1]) == "2e"


def test_figures_count_calls_and_tell_kinds_apart() -> None:
    module = graph(X, "a = aten::relu(%x)\nb = aten::tanh(%y)\nc = aten::mm(%a, %x)", "b, c")
    planned = Planned(module, "inductor")
    assert planned.kernels == planned.launches == 2
    assert planned.calls is not None
    assert planned.calls.describe() == "2 kernel calls: 1 of generated kernels, which run 2 loop nests, and 1 of extern kernels"


def test_json_has_the_calls_beside_the_launches() -> None:
    text = graph(X, "a = aten::relu(%x)\nb = aten::tanh(%y)\nc = aten::mm(%a, %x)", "b, c").source.text
    session = Session(Options(demands={"policy": "inductor"}, why=True))
    told = as_dict(session.add("model.txt", load(text)))
    (stages,) = json.loads(json.dumps(told))["stages"]
    assert stages["calls"] == {"generated": 1, "extern": 1, "loop_nests": 2}
    assert [row["launches"] for row in stages["stages"] if row["name"] == "fused"] == [2]


def test_fusing_two_loops_of_one_kernel_saves_no_kernel() -> None:
    # Loops over the rows, then over the columns of a value: two nests of one function.
    module = graph({"x": tensor(64, 64)}, "a = aten::softmax(%x, 0, None)\nb = aten::softmax(%a, 1, None)", "b")
    planned = Planned(module, "inductor")
    nodes = {node.name: node for node in module.main().nodes}
    assert planned.launches == 1
    assert planned.in_one_call(nodes["a"], nodes["b"])


def test_complex_numbers_are_a_library_call() -> None:
    module = backward("""
        mul: "f32[3, 16]" = torch.ops.aten.mul.Tensor(arg0_1, 2)
        _fft_r2c: "c64[3, 9]" = torch.ops.aten._fft_r2c.default(mul, [1], 0, True);  mul = None
        mul_1: "c64[3, 9]" = torch.ops.aten.mul.Tensor(_fft_r2c, arg1_1);  _fft_r2c = arg1_1 = None
        _fft_c2r: "f32[3, 16]" = torch.ops.aten._fft_c2r.default(mul_1, [1], 2, 16);  mul_1 = None
        add: "f32[3, 16]" = torch.ops.aten.add.Tensor(_fft_c2r, arg0_1);  _fft_c2r = arg0_1 = None
    """, 'arg0_1: "f32[3, 16]", arg1_1: "f32[9]"', "add,")
    assert kinds(Planned(module, "inductor").plans[-1]) == "1eee1"


def test_saved_sums_of_attention_are_copied_for_its_gradients() -> None:
    # Torch saves them as (batch, length, heads) in memory, and its call wants (batch, heads, length).
    module = backward("""
        grads = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default(tangents_1, q, k, v, out, sums, 0.0, False)
        getitem: "f32[2, 4, 8, 8]" = grads[0]
        getitem_1: "f32[2, 4, 8, 8]" = grads[1]
        getitem_2: "f32[2, 4, 8, 8]" = grads[2];  grads = None
    """, ", ".join(f'{name}: "f32[2, 4, 8, 8]"' for name in ("q", "k", "v", "out")) + ', sums: "f32[2, 4, 8]", tangents_1: "f32[2, 4, 8, 8]"',
        "getitem, getitem_1, getitem_2")
    assert kinds(Planned(module, "inductor").plans[-1]) == "1e"


def test_a_product_reads_no_number_in_all_places() -> None:
    module = backward("""
        expand: "f32[2, 3, 4]" = torch.ops.aten.expand.default(tangents_1, [2, 3, 4]);  tangents_1 = None
        bmm: "f32[2, 3, 5]" = torch.ops.aten.bmm.default(expand, primals_1);  expand = primals_1 = None
    """, 'primals_1: "f32[2, 4, 5]", tangents_1: "f32[]"', "bmm,")
    assert kinds(Planned(module, "inductor").plans[-1]) == "1e"


def test_a_clone_between_two_results_is_a_copy() -> None:
    # Both results would share memory without it; the same program for inference has no copy.
    lines = """
        mm: "f32[8, 8]" = torch.ops.aten.mm.default({0}, {0})
        view: "f32[4, 2, 8]" = torch.ops.aten.reshape.default(mm, [4, 2, 8])
        clone: "f32[4, 2, 8]" = torch.ops.aten.clone.default(view, memory_format = torch.contiguous_format);  view = None
        view_1: "f32[8, 8]" = torch.ops.aten.reshape.default(clone, [8, 8]);  clone = None
        mm_1: "f32[8, 8]" = torch.ops.aten.mm.default(view_1, {0})
    """
    for name, said in (("primals_1", "e1e"), ("arg0_1", "ee")):
        module = backward(lines.format(name), f'{name}: "f32[8, 8]"', "mm_1, mm, view_1")
        assert kinds(Planned(module, "inductor").plans[-1]) == said


def test_filters_that_a_forward_graph_saves_are_copied_first() -> None:
    module = backward("""
        convolution: "f32[2, 8, 6, 6]" = torch.ops.aten.convolution.default(primals_3, primals_1, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
        relu: "f32[2, 8, 6, 6]" = torch.ops.aten.relu.default(convolution);  convolution = None
        convolution_1: "f32[2, 4, 6, 6]" = torch.ops.aten.convolution.default(relu, primals_2, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
        mean: "f32[]" = torch.ops.aten.mean.default(convolution_1);  convolution_1 = None
    """, 'primals_1: "f32[8, 4, 3, 3]", primals_2: "f32[4, 8, 3, 3]", primals_3: "f32[2, 4, 6, 6]"',
        "mean, primals_1, primals_2, primals_3, relu")
    assert kinds(Planned(module, "inductor").plans[-1]) == "3e1e2"


def test_pooling_without_overlap_is_a_reduction() -> None:
    for size, called in ((12, False), (11, True)):
        made = plan(graph({"x": tensor(1, 6, size, size)}, "a = aten::adaptive_avg_pool2d(%x, [2, 2])", "a"))
        assert ("e" in kinds(made)) == called
