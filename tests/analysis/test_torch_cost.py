"""What the operators of a TorchScript text cost, as torch would run them."""
from __future__ import annotations

from irscope.analysis.survey import Survey
from irscope.formats.torchscript import operators
from irscope.ops.registry import all_ops
from tests.expand.torchscript_runs import graph, module_of

F32 = 4
ONE = "requires_grad=0, device=cpu"


def surveyed(body: str, inputs: str) -> Survey:
    return Survey(module_of(graph(body, inputs)))


def test_a_product_costs_what_its_primitives_cost_and_reads_a_weight_that_the_text_does_not_type() -> None:
    facts = surveyed("""
        %w : Tensor = prim::GetAttr[name="weight"](%self)
        %none : NoneType = prim::Constant()
        %y : Float(8, 32, strides=[32, 1]) = aten::linear(%x, %w, %none)
        return (%y)
    """, "%self : __torch__.M, %x : Float(8, 16, strides=[16, 1])")
    assert facts.totals.flops == 2 * 8 * 16 * 32
    assert facts.totals.bytes == F32 * (8 * 16 + 16 * 32 + 8 * 32)
    assert facts.totals.kernels == 1


def test_views_move_nothing_and_copies_do() -> None:
    facts = surveyed("""
        %0 : int = prim::Constant[value=0]()
        %1 : int = prim::Constant[value=1]()
        %t : Float(16, 8, strides=[1, 16]) = aten::transpose(%x, %0, %1)
        %minus : int = prim::Constant[value=-1]()
        %size : int[] = prim::ListConstruct(%minus)
        %flat : Float(128, strides=[1]) = aten::reshape(%t, %size)
        %again : Float(128, strides=[1]) = aten::reshape(%flat, %size)
        return (%again)
    """, "%x : Float(8, 16, strides=[16, 1])")
    assert facts.totals.kernels == 1  # the transposed elements are copied into their order; the rest shows memory
    assert facts.totals.bytes == F32 * 2 * 128
    entry = facts.module.main()
    assert facts.memory.graphs[entry].peak == F32 * 128


def test_a_list_of_tensors_is_read_and_dropout_that_does_nothing_is_free() -> None:
    facts = surveyed("""
        %0 : int = prim::Constant[value=0]()
        %p : float = prim::Constant[value=0.1]()
        %d : Float(8, 4, strides=[4, 1]) = aten::dropout(%x, %p, %0)
        %xs : Tensor[] = prim::ListConstruct(%d, %y)
        %z : Float(16, 4, strides=[4, 1]) = aten::cat(%xs, %0)
        return (%z)
    """, "%x : Float(8, 4, strides=[4, 1]), %y : Float(8, 4, strides=[4, 1])")
    assert facts.totals.kernels == 1
    assert facts.totals.bytes == F32 * (32 + 32 + 64)


def test_a_counted_loop_costs_its_trips() -> None:
    facts = surveyed("""
        %five : int = prim::Constant[value=5]()
        %true : bool = prim::Constant[value=1]()
        %y : Float(8, strides=[1]) = prim::Loop(%five, %true, %x)
          block0(%i : int, %acc : Float(8, strides=[1])):
            %next : Float(8, strides=[1]) = aten::mul(%acc, %acc)
            -> (%true, %next)
        return (%y)
    """, "%x : Float(8, strides=[1])")
    assert facts.totals.flops == 5 * 8
    assert facts.totals.kernels == 5


def test_a_program_without_shapes_has_no_known_work_and_says_why() -> None:
    facts = surveyed("""
        %y : Tensor = aten::relu(%x)
        return (%y)
    """, "%x : Tensor")
    assert facts.costs.known is not None
    assert "does not say the shape of input %x" in facts.costs.known.reason


def test_every_operator_that_runs_as_a_view_is_known_as_one() -> None:
    operators.load()
    ops = {op.name: op.traits for op in all_ops("torchscript")}
    styles = {name: {c.style for c in found.choices} for name in operators.names() if (found := operators.overloads(name))}
    assert all("view" in ops[name] for name, style in styles.items() if "view" in style)
    copying = {name for name, style in styles.items() if "alias" in style and not ops[name] & {"view", "dense-view", "dropout"}}
    assert {name for name in copying if not name.startswith("aten::_cast_")} == {"prims::as_strided_scatter"} | {f"aten::{name}" for name in (
        "as_strided_copy as_strided_scatter cpu to_dense to type_as float double half bfloat16 long int bool byte conj_physical resolve_conj resolve_neg sum_to_size").split()}
