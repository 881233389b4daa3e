"""What StableHLO becomes: the graph of its HLO, with the same findings and the same numbers; faults at their place."""
from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from irscope.analysis.reference import results
from irscope.api import diff, lint, run
from irscope.api.options import LintOptions, RunOptions
from irscope.backends.model import primitive
from irscope.formats.detect import read
from irscope.graph import Module, Reading
from irscope.lazy import Array
from irscope.ops import hlo
from irscope.passes import pass_named
from irscope.source import SourceText, UserError
from tests.formats.stablehlo_pairs import PAIRS, is_judged_alike, is_same, pairs_in


def module_of(body: str, arguments: str = "%x: tensor<4xf32>", results: str = "tensor<4xf32>", more: str = "") -> str:
    """A module around the operations of its one public function."""
    return f"module @m {{\n  func.func public @main({arguments}) -> ({results}) {{\n{body}\n  }}\n{more}}}\n"


def reading_of(text: str) -> Reading:
    return read(SourceText("test.mlir", text))


def good(text: str) -> Module:
    reading = reading_of(text)
    assert reading.ok, [finding.message for finding in reading.findings]
    return reading.module()


def outputs(text: str, *arrays: Array, engine: str = "reference") -> list[Array]:
    return run(text, RunOptions(engine=engine), inputs={f"arg{i}": array for i, array in enumerate(arrays)}).outputs


# ---- pairs that jax printed

@pytest.mark.parametrize("text", pairs_in(PAIRS), ids=lambda path: path.stem)
def test_a_text_is_the_graph_of_its_translation(text: Path) -> None:
    assert is_same(text)
    assert is_judged_alike(text)


TWO_FUNCTIONS = module_of("""
    %0 = call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.negate %0 : tensor<4xf32>
    return %1 : tensor<4xf32>""", more="""
  func.func private @twice(%y: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.exponential %y : tensor<4xf32>
    %1 = stablehlo.exponential %y : tensor<4xf32>
    %2 = stablehlo.add %0, %1 : tensor<4xf32>
    return %2 : tensor<4xf32>
  }
""")


def test_a_finding_in_a_called_function_names_its_values() -> None:
    """Both functions have a %1."""
    finding, = (f for f in lint(TWO_FUNCTIONS, LintOptions(isolated=True)).findings if f.code == "ALG002")
    assert finding.graph == "twice"
    assert [(step.node, step.op) for step in finding.path] == [("0", "exponential"), ("1", "exponential")]
    place = finding.place()
    assert place is not None and place.line == TWO_FUNCTIONS[:TWO_FUNCTIONS.rindex("%1 = ")].count("\n") + 1


def test_a_translation_keeps_calls_and_moves_slices_through_concatenations() -> None:
    text = module_of("""
    %c = stablehlo.constant dense<2.0> : tensor<f32>
    %d = stablehlo.constant dense<2.0> : tensor<f32>
    %unused = call @f(%c) : (tensor<f32>) -> tensor<f32>
    %used = call @f(%d) : (tensor<f32>) -> tensor<f32>
    %b = stablehlo.reshape %used : (tensor<f32>) -> tensor<1xf32>
    %all = stablehlo.concatenate %x, %b, %x, dim = 0 : (tensor<4xf32>, tensor<1xf32>, tensor<4xf32>) -> tensor<9xf32>
    %0 = stablehlo.slice %all [6:9:2] : (tensor<9xf32>) -> tensor<2xf32>
    %1 = stablehlo.slice %all [3:5] : (tensor<9xf32>) -> tensor<2xf32>
    %2 = stablehlo.add %0, %1 : tensor<2xf32>
    return %2 : tensor<2xf32>""", results="tensor<2xf32>", more="""
  func.func private @f(%y: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.negate %y : tensor<f32>
    return %0 : tensor<f32>
  }
""")
    module = pass_named("translate").run(good(text))
    names = [node.op.name for node in module.main().nodes]
    assert names == ["constant", "call", "parameter", "slice", "call", "reshape", "concatenate", "slice", "add"]
    slices = [node for node in module.main().nodes if node.op is hlo.slice]
    assert [node.attrs["slice"] for node in slices] == [((1, 4, 2),), ((3, 5, 1),)]
    x = np.array([1, 2, 3, 4], np.float32)
    np.testing.assert_array_equal(results(module, [x])[0], [6, 2])


def test_different_programs_are_different() -> None:
    texts = pairs_in(PAIRS)[:6]
    for text, other in pairwise(texts):
        assert not diff(str(text), str(other.with_suffix(".hlo"))).same


def test_texts_run_as_their_translation() -> None:
    rng = np.random.default_rng(0)
    for name, shapes in (("mlp", ((4, 8), (8, 3), (3,))), ("attention", ((2, 5, 8), (2, 6, 8), (2, 6, 8))), ("variadic", ((3, 4),))):
        arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        texts = ((PAIRS / f"{name}{suffix}").read_text() for suffix in (".mlir", ".hlo"))
        one, other = (outputs(text, *arrays, engine="llvm") for text in texts)
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


# ---- structure

LOOP = module_of("""
    %c = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %0:2 = stablehlo.while(%i = %c, %y = %x) : tensor<i32>, tensor<4xf32>
     cond {
      %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.add %y, %x : tensor<4xf32>
      %2 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %2, %1 : tensor<i32>, tensor<4xf32>
    }
    return %0#1 : tensor<4xf32>""", "%x: tensor<4xf32>, %n: tensor<i32>")


def test_what_a_loop_reads_from_outside_is_carried_along() -> None:
    module = good(LOOP)
    loop = next(node for node in module.main().nodes if node.op is hlo.while_)
    assert str(loop.type) == "(s32[], f32[4], s32[], f32[4])"  # i, y, n, x; the constant is copied into the body
    assert [graph.name for graph in loop.bodies] == ["main.0.cond", "main.0.body"]
    assert sum(node.op is hlo.constant for node in loop.bodies[1].nodes) == 1
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(outputs(LOOP, x, np.asarray(3, np.int32))[0], 4 * x)


def test_added_nodes_are_neither_shown_nor_counted() -> None:
    module = good(LOOP)
    shown = [node.op.name for graph in module.graphs.values() for node in graph.shown()]
    assert sorted(shown) == ["add", "add", "compare", "constant", "constant", "while"]


def test_branches_take_what_any_of_them_reads() -> None:
    text = module_of("""
    %0 = "stablehlo.case"(%i) ({
      %1 = stablehlo.negate %x : tensor<4xf32>
      stablehlo.return %1 : tensor<4xf32>
    }, {
      %1 = stablehlo.add %x, %y : tensor<4xf32>
      stablehlo.return %1 : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>""", "%i: tensor<i32>, %x: tensor<4xf32>, %y: tensor<4xf32>")
    choice = next(node for node in good(text).main().nodes if node.op is hlo.conditional)
    assert [str(operand.type) for operand in choice.operands] == ["s32[]", "(f32[4], f32[4])", "(f32[4], f32[4])"]
    x, y = np.ones(4, np.float32), np.full(4, 2, np.float32)
    assert [outputs(text, np.asarray(i, np.int32), x, y)[0].tolist() for i in (0, 7)] == [[-1] * 4, [3] * 4]


def test_functions_come_before_their_callers_whatever_their_order() -> None:
    text = module_of("    %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>\n    return %0 : tensor<4xf32>", more="""
  func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.sine %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
""")
    assert list(good(text).graphs) == ["f", "main"] and good(text).entry == "main"


def test_a_function_that_calls_itself_is_reported() -> None:
    text = module_of("    %0 = call @main(%x) : (tensor<4xf32>) -> tensor<4xf32>\n    return %0 : tensor<4xf32>")
    reading = reading_of(text)
    assert reading.ok and "calls itself" in reading.findings[0].message


# ---- faults

@pytest.mark.parametrize(("body", "line", "message"), [
    ("    %0 = stablehlo.concatenate %x, %x, dim = 1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>", 3, "out of range"),
    ("    %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xf32>) -> tensor<2x3xf32>", 3, "not equal to 1 or size of result"),
    ("    %0 = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<5xf32>", 3, "reshape"),
    ("    %0 = \"stablehlo.dot_general\"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>", 3, "dot_dimension_numbers"),
    ("    %0 = call @nobody(%x) : (tensor<4xf32>) -> tensor<4xf32>", 3, "does not reference a valid function"),
    ("    %0 = \"stablehlo.add\"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi32>", 3, "same type for all operands and results"),
])
def test_faults_have_their_place(body: str, line: int, message: str) -> None:
    reading = reading_of(module_of(body + "\n    return %x : tensor<4xf32>"))
    assert not reading.ok
    finding = reading.findings[0]
    assert message in finding.message and reading.source.text.count("\n", 0, finding.offset) + 1 == line
    assert any(node.op.name.endswith("?") for node in reading.module().main().nodes)  # kept and shown


def test_a_returned_type_must_be_the_declared_one() -> None:
    reading = reading_of(module_of("    return %x : tensor<4xf32>", results="tensor<4xi32>"))
    assert not reading.ok and reading.findings[0].code in ("SHL031", "SHL010")


# ---- operators that HLO has not

def chlo(name: str, *arrays: Array) -> Array:
    n, types = len(arrays[0]), {"float32": "f32", "float64": "f64"}
    t = f"tensor<{n}x{types[arrays[0].dtype.name]}>"
    arguments = ", ".join(f"%a{i}: {t}" for i in range(len(arrays)))
    operands = ", ".join(f"%a{i}" for i in range(len(arrays)))
    signature = f"({', '.join([t] * len(arrays))}) -> {t}"
    body = f"    %0 = \"chlo.{name}\"({operands}) : {signature}\n    return %0 : {t}"
    return outputs(module_of(body, arguments, t), *arrays)[0]


@pytest.mark.parametrize(("name", "function", "points"), [
    ("lgamma", math.lgamma, (0.3, 1.5, 4.0, -0.7, 30.0)), ("erfc", math.erfc, (-2.0, -0.3, 0.0, 0.7, 1.5, 3.0)),
    ("square", lambda x: x * x, (-2.0, 0.5)), ("erf_inv", None, (-0.9, -0.2, 0.0, 0.5, 0.999)),
])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_composites(name: str, function: object, points: Sequence[float], dtype: type) -> None:
    x: Array = np.asarray(points, dtype)
    found = chlo(name, x)
    tolerance = 3e-6 if dtype is np.float32 else 1e-12
    if name == "erf_inv":
        np.testing.assert_allclose([math.erf(v) for v in found.tolist()], x, rtol=0, atol=tolerance)
    else:
        assert callable(function)
        np.testing.assert_allclose(found, [function(v) for v in x.tolist()], rtol=tolerance, atol=tolerance)


def test_digamma_polygamma_zeta_and_bessel() -> None:
    """Values of Abramowitz and Stegun, tables 6.1, 6.2, 9.8 and 23.3."""
    x = np.asarray([1.0, 0.5])
    np.testing.assert_allclose(chlo("digamma", x), [-0.5772156649015329, -1.9635100260214235], rtol=1e-12)
    np.testing.assert_allclose(chlo("polygamma", np.asarray([1.0]), np.asarray([1.0])), [math.pi ** 2 / 6], rtol=1e-12)
    np.testing.assert_allclose(chlo("zeta", np.asarray([4.0]), np.asarray([1.0])), [math.pi ** 4 / 90], rtol=1e-12)
    np.testing.assert_allclose(chlo("bessel_i1e", np.asarray([1.0, -1.0])), [0.2079104153497085, -0.2079104153497085], rtol=1e-9)


def test_bessel_of_large_numbers_has_the_precision_of_its_type() -> None:
    """Above 8 the sum has 25 terms in double precision; values by the power series in 60 digits."""
    x = np.asarray([8.5, 10.0, 30.0, -100.0])
    np.testing.assert_allclose(chlo("bessel_i1e", x), [0.13054935509459586, 0.12126268138445552, 0.07191633059864755, -0.03974415302513025], rtol=1e-14)


def test_next_after() -> None:
    x = np.asarray([1.0, 0.0, -1.0, np.inf, 2.0], np.float32)
    y = np.asarray([2.0, -1.0, 0.0, 0.0, np.nan], np.float32)
    np.testing.assert_array_equal(chlo("next_after", x, y), np.nextafter(x, y))


FLOATS = ("f4E2M1FN f6E2M3FN f6E3M2FN f8E3M4 f8E4M3 f8E4M3B11FNUZ f8E4M3FN f8E4M3FNUZ f8E5M2 f8E5M2FNUZ f8E8M0FNU bf16 f16 f32 f64").split()
COMPLEX = ("complex<f32>", "complex<f64>")
TAKES_COMPLEX = "acos acosh asin asinh atan atanh conj cosh sinh square tan".split()


@pytest.mark.parametrize("name", [*TAKES_COMPLEX, *"bessel_i1e digamma erf erf_inv erfc is_inf is_neg_inf is_pos_inf lgamma next_after polygamma zeta".split()])
def test_chlo_takes_the_element_types_that_it_can_expand(name: str) -> None:
    """Each operator refuses an element type where it is read (ChloOps.td), or its expansion takes that type."""
    taken = []
    for element in (*FLOATS, *COMPLEX, "i1", "i4", "i32", "ui8"):
        t = f"tensor<3x{element}>"
        result = "tensor<3xi1>" if name.startswith("is_") else t
        types = f"{t}, {t} -> {t}" if name in ("next_after", "polygamma", "zeta") else f"{t} -> {result}"
        operands = "%x, %x" if "," in types else "%x"
        reading = reading_of(module_of(f"    %0 = chlo.{name} {operands} : {types}\n    return %0 : {result}", f"%x: {t}", result))
        if reading.ok:
            taken.append(element)
            assert len(primitive(reading.module()).main().nodes) >= 1
        else:
            assert [finding.code for finding in reading.findings] == ["SHL030"]
    if name == "next_after":
        assert taken == [element for element in FLOATS if not element.startswith("f6E")]
    else:
        assert taken == [*FLOATS, *(COMPLEX if name in TAKES_COMPLEX else ())]


def test_complex_functions_are_translated_without_loss() -> None:
    z = np.asarray([1e-20 + 1j, 3 - 4j, -1 + 1e-3j, 0.6 + 0.8j, 1e30 + 1e30j], np.complex64)
    t = "tensor<5xcomplex<f32>>"
    for name, function in (("log", np.log), ("sqrt", np.sqrt), ("log_plus_one", np.log1p)):
        text = module_of(f"    %0 = stablehlo.{name} %x : {t}\n    return %0 : {t}", f"%x: {t}", t)
        translated = pass_named("translate").run(good(text))
        assert not any(node.op.name == name.replace("_", "-") and str(node.type).startswith("c") for node in translated.main().nodes)
        found = results(translated, [z])[0]
        wanted = function(z.astype(np.complex128))
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=1e-6)


# ---- sizes that follow from the inputs

OPEN = module_of("""
    %two = stablehlo.constant dense<2> : tensor<i32>
    %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
    %1 = stablehlo.multiply %0, %two : tensor<i32>
    %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.dynamic_reshape %x, %2 : (tensor<?x2xf32>, tensor<1xi32>) -> tensor<?xf32>
    %4 = stablehlo.sine %3 : tensor<?xf32>
    return %4 : tensor<?xf32>""", "%x: tensor<?x2xf32>", "tensor<?xf32>")


@pytest.mark.parametrize("size", [1, 3])
def test_sizes_come_with_the_inputs(size: int) -> None:
    x = np.linspace(0, 1, 2 * size, dtype=np.float32).reshape(size, 2)
    for engine in ("reference", "llvm"):
        np.testing.assert_allclose(outputs(OPEN, x, engine=engine)[0], np.sin(x).reshape(-1), rtol=1e-6)


def test_an_open_size_without_an_input_is_refused_by_name() -> None:
    with pytest.raises(UserError, match=r"x is f32\[\?,2\]"):
        outputs(OPEN)


# ---- translation

def test_translation_removes_what_jaxlib_removes() -> None:
    text = module_of("""
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %1 = stablehlo.multiply %x, %0 : tensor<4xf32>
    %2 = stablehlo.exponential %1 : tensor<4xf32>
    %3 = stablehlo.negate %1 : tensor<4xf32>
    %4 = stablehlo.convert %3 : tensor<4xf32>
    return %4 : tensor<4xf32>""")
    made = pass_named("translate").run(good(text))
    assert [node.op.name for node in made.main().nodes] == ["parameter", "negate"]
    assert [finding.code for finding in lint([text]).findings] == []


def test_rules_say_that_sizes_are_open() -> None:
    assert [(f.code, f.help) for f in lint([OPEN]).findings] == [("SHL035", "--shape x=8,3 binds them")]
    assert lint([OPEN], LintOptions(shapes={"x": (3, 2)})).findings == []


QUANTISED = """\
!q = !quant.uniform<i8:f32, 2.0:15>
func.func private @f(%arg0: tensor<2x!q>) -> tensor<2x!q> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<2x!q>
  return %0 : tensor<2x!q>
}
func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.uniform_quantize %arg0 : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 2.0:15>>
  %1 = stablehlo.uniform_dequantize %0 : (tensor<2x!quant.uniform<i8:f32, 2.0:15>>) -> tensor<2xf32>
  %2 = stablehlo.negate %1 : tensor<2xf32>
  return %2 : tensor<2xf32>
}
"""


def test_operations_on_quantised_types_are_named_and_stay_opaque() -> None:
    reading = reading_of(QUANTISED)
    assert reading.ok and {finding.code for finding in reading.findings} == {"SHL034"}
    reported = [(reading.source.place(finding.offset).line, finding.message.split(" is ")[0]) for finding in reading.findings]
    assert reported == [(3, "'stablehlo.add'"), (7, "'stablehlo.uniform_quantize'"), (8, "'stablehlo.uniform_dequantize'")]
    assert all("--stablehlo-legalize-quant-to-math" in finding.help for finding in reading.findings)
    with pytest.raises(UserError, match="cannot run"):
        run(reading)
