"""Facts that other rooms read: strides, figures that begin at zero, computations of a cut module, degrees of soundness, rounding."""
from __future__ import annotations

import numpy as np
import pytest

import irscope
from irscope.analysis.classes import drawn_class, is_leaflike, is_view, row_major
from irscope.analysis.cost import Known, Totals, estimate
from irscope.analysis.excerpt import excerpt
from irscope.analysis.identities import IDENTITIES
from irscope.analysis.parts import parts
from irscope.analysis.reference import results
from irscope.analysis.rounding import coarsest_types, step
from irscope.analysis.soundness import Degree, Use, held_together, soundness, unsound
from irscope.graph import TensorType
from irscope.graph.dtypes import BF16, F16, F32, F64, S32
from irscope.graph.types import DynamicDim
from tests.analysis.texts import FUSED, layers, node, survey


def test_strides_of_an_array_without_gaps() -> None:
    assert row_major(TensorType(F32, (2, 3, 4))) == (12, 4, 1)
    assert row_major(TensorType(F32, (2, 0, 4))) == (4, 4, 1)
    assert row_major(TensorType(F32, ())) == ()
    assert row_major(TensorType(F32, (2, DynamicDim("n")))) is None


def test_figures_begin_at_zero_and_add_up() -> None:
    total = Totals()
    assert (total.flops, total.read, total.written, total.kernels, total.fusions, total.is_open, total.bytes) == (0, 0, 0, 0, 0, False, 0)
    total.add(Totals(1, 2, 3, 4, 5, False))
    assert (total.flops, total.read, total.written, total.kernels, total.fusions, total.is_open, total.bytes) == (1, 2, 3, 4, 5, False, 5)
    total.add(Totals(1, 2, 3, 4, 5, True), 3)
    assert (total.flops, total.read, total.written, total.kernels, total.fusions, total.is_open) == (4, 8, 12, 16, 20, True)
    total.add(Totals())
    assert total.is_open and Known({}, {}).reason == ""


def test_a_processor_computes_while_it_moves() -> None:
    assert (estimate(160, 5), estimate(160, 10), estimate(160, 20)) == (10, 10, 20)


@pytest.mark.parametrize(("train", "is_identity"), [("0", True), ("1", False)])
def test_dropout_is_a_view_in_evaluation_alone(train: str, is_identity: bool) -> None:
    text = f"""graph(%x : Float(2, 3)):
  %p : float = prim::Constant[value=0.5]()
  %t : bool = prim::Constant[value={train}]()
  %y : Float(2, 3) = aten::dropout(%x, %p, %t)
  return (%y)
"""
    assert is_view(node(survey(text), "y")) is is_identity


def test_classes_to_draw_in() -> None:
    facts = survey(FUSED)
    assert [drawn_class(node(facts, name)) for name in ("dot", "biased", "total", "zero", "x")] == [
        "contraction", "elementwise", "reduction", "constant", "parameter"]
    assert [is_leaflike(node(facts, name)) for name in ("x", "zero", "dot", "wide")] == [True, True, False, False]


CUT = """HloModule m

a { p = f32[2] parameter(0)
  ROOT n = f32[2] negate(p) }
b { p = f32[2] parameter(0)
  ROOT n = f32[2] call(p), to_apply=a }
c { p = f32[2] parameter(0)
  ROOT n = f32[2] abs(p) }
d { p = f32[2] parameter(0)
  ROOT n = f32[2] call(p), to_apply=c }
ENTRY e { x = f32[2] parameter(0)
  y = f32[2] call(x), to_apply=b
  z = f32[2] add(x,"""


@pytest.mark.parametrize(("without", "entries"), [((), ["b", "d"]), (("b",), ["a", "d"]), (("a",), ["d"]), (("a", "c"), [])])
def test_complete_computations_of_a_cut_module(without: tuple[str, ...], entries: list[str]) -> None:
    module = irscope.load(CUT).module()
    found = parts(module, without)
    assert sorted(part.entry for part in found) == entries
    assert all(part.entry in part.graphs and part.attrs == {} for part in found)
    assert all(set(part.graphs) == {part.entry} | ({"a"} if part.entry == "b" else {"c"} if part.entry == "d" else set()) for part in found)


def test_a_whole_module_has_no_parts() -> None:
    assert parts(irscope.load(FUSED).module()) == []


@pytest.mark.parametrize(("text", "whole", "degree"), [
    (FUSED, True, Degree.TYPED), (FUSED, False, Degree.PARTS),
    ("ENTRY e { x = f32[2] parameter(0)\nROOT r = f32[3] negate(x) }\n", True, Degree.WHOLE),
    ("ENTRY e { x = f32[2] parameter(0)\ny = bf16[2] parameter(1)\nROOT t = bf16[2] add(x, y) }\n", True, Degree.TYPED),
])
def test_degrees_of_soundness(text: str, whole: bool, degree: Degree) -> None:
    found = soundness(irscope.load(text).module(), whole)
    assert found.degree is degree
    assert [use for use in Use if found.allows(use)] == [use for use in Use if soundness_needs(use) <= degree]


def soundness_needs(use: Use) -> Degree:
    rest = {Use.STATS: Degree.NOTHING, Use.SHOW: Degree.PARTS}
    return rest.get(use, Degree.TYPED if use in (Use.POLICIES, Use.PASSES, Use.RUN) else Degree.WHOLE)


def test_unsound_nodes_are_opaque() -> None:
    module = irscope.load("ENTRY e { x = f32[2] parameter(0)\ny = f32[3] negate(x)\nROOT r = f32[3] abs(y) }\n").module()
    assert {n.name for n in unsound(module)} == {"y"}
    made = held_together(module)
    assert [n.op.name for n in made.main().nodes] == ["parameter", "negate?", "abs"]
    assert made.main().nodes[1].loc == module.main().nodes[1].loc
    sound = irscope.load(FUSED).module()
    assert held_together(sound) is sound


@pytest.mark.parametrize(("dtype", "size"), [(F64, 2.0**-52), (F32, 2.0**-23), (F16, 2.0**-10), (BF16, 2.0**-7), (S32, 0.0)])
def test_steps_of_element_types(dtype: object, size: float) -> None:
    assert step(dtype) == size  # type: ignore[arg-type]


def test_the_coarsest_type_of_each_output() -> None:
    module = irscope.load("""f { p = f32[2] parameter(0)
  h = bf16[2] convert(p)
  ROOT n = f32[2] convert(h) }
ENTRY e { x = f64[2] parameter(0)
  a = f32[2] convert(x)
  b = f16[2] convert(x)
  c = f64[2] convert(a)
  d = f32[2] call(a), to_apply=f
  i = s32[2] convert(d)
  ROOT t = (f64[2], f16[2], f32[2], s32[2], f64[2]) tuple(c, b, d, i, x) }
""").module()
    assert coarsest_types(module) == [F32, F16, BF16, BF16, None]


def test_an_excerpt_keeps_what_the_rest_needs() -> None:
    module = irscope.load(layers(2)).module()
    graph = module.main()
    at = {n.name: n for n in graph.nodes}
    made = excerpt(module, graph, {at["s0_1"], at["s0_2"], at["s0_3"]}).main()
    assert [p.name for p in made.params] == ["s0_0", "x"] and made.result().name == "s0_3"
    several = excerpt(module, graph, {at["s0_3"], at["s1_0"], at["s1_1"]}).main()
    assert [o.name for o in several.result().operands] == ["s0_3", "s1_1"]


def test_the_table_of_identities() -> None:
    names = ("abs-non-negative add-zero add-difference and-ones and-zero clamp-twice not-equal-zero zero-not-equal equal-one one-equal greater-than-maximum "
             "greater-than-minimum selected-not-zero complex-of-parts convert-same convert-back bitcast-convert-back bitcast-convert-same copy divide-one "
             "divide-exponential divide-power divide-sqrt divide-rsqrt divide-quotients divide-quotient divide-by-quotient exponential-zero imag-of-complex "
             "imag-of-real log-exponential log-sqrt log-rsqrt maximum-lowest minimum-highest extreme-same multiply-one multiply-zero multiply-negations "
             "square-of-abs multiply-exponentials multiply-mask square-of-sqrt square-of-rsqrt negate-negate not-not or-ones or-zero power-exponential "
             "power-zero power-one power-two power-three power-inverse power-half real-of-complex real-of-real remainder-twice rsqrt-inverse rsqrt-power "
             "select-same select-true select-false select-not select-true-false select-false-true sqrt-of-square subtract-same subtract-zero "
             "subtract-difference subtract-sum subtract-from-sum xor-same xor-zero maximum-cbrt maximum-erf maximum-logistic maximum-tanh select-gt select-ge "
             "select-lt select-le select-eq select-ne")
    assert list(IDENTITIES) == names.split()


def test_an_excerpt_of_a_parameter_is_the_parameter() -> None:
    module = irscope.load(layers(1)).module()
    [x, w] = module.main().params
    made = excerpt(module, module.main(), {x}).main()
    assert [n.name for n in made.nodes] == ["x"] and made.result().name == "x"
    both = excerpt(module, module.main(), {x, w}).main()
    assert both.result().name == "w_0"


def test_denormals_are_flushed_unless_they_are_kept() -> None:
    module = irscope.load("ENTRY e { x = f32[1] parameter(0)\ny = (f32[1], token[]) parameter(1)\nz = f32[1] get-tuple-element(y), index=0\n"
                          "ROOT r = f32[1] multiply(x, z) }\n").module()
    small = [np.array([1e-30], np.float32), np.array([1e-12], np.float32)]
    assert results(module, small)[0] == 0 and results(module, small, True)[0] == 0
    assert results(module, small, False)[0] > 0
