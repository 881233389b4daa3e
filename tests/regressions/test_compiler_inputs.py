"""Programs that operators, their references and the code generator once failed on: each is compiled or refused, and none takes long."""
from __future__ import annotations

import numpy as np
import pytest

import irscope
from irscope.analysis.reference import evaluate
from irscope.expand import expand
from irscope.graph import DTYPES, TensorType
from irscope.ops import hlo
from irscope.ops.faults import TypeFault
from tests.effort import calls_in, within

SUBTRACT = "g0 { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] subtract(a, b) }\n"


def read(entry: str, computations: str = "") -> irscope.Reading:
    return irscope.load(f"HloModule m\n{computations}ENTRY e {{\n{entry}\n}}\n", format="hlo")


def infer(reading: irscope.Reading) -> None:
    node = reading.module().main().result()
    assert node.op.infer is not None
    node.op.infer(node)


@pytest.mark.parametrize("given, result", [("", ""), ("4,8", "4,2"), ("4,8", "4")])
def test_ragged_all_to_all_moves_rows_of_one_shape(given: str, result: str) -> None:
    text = f"x = f32[{given}] parameter(0)\n o = f32[{result}] parameter(1)\n s = s32[1] parameter(2)\n" \
        f" ROOT d = f32[{result}] ragged-all-to-all(x, o, s, s, s, s)"
    with pytest.raises(TypeFault, match="moves rows of the input into the output"):
        infer(read(text))


@pytest.mark.parametrize("value", ["t = (f32[8]) tuple(x)", "t = token[] after-all()"])
def test_collective_permute_takes_arrays(value: str) -> None:
    type = value.split("= ")[1].rsplit(" ", 1)[0]
    reading = read(f"x = f32[8] parameter(0)\n {value}\n ROOT d = {type} collective-permute(t), source_target_pairs={{{{1,2}}}}")
    with pytest.raises(TypeFault, match="operand 0 of collective-permute must be an array"):
        infer(reading)


@pytest.mark.parametrize("blocks", [0, 2])
def test_scaled_dot_over_no_elements_is_zero(blocks: int) -> None:
    model = irscope.compile(read(
        f"x = f32[4,0] parameter(0)\n y = f32[0,4] parameter(1)\n s = f32[4,{blocks}] parameter(2)\n t = f32[] constant(1)\n"
        " ROOT d = f32[4,4] scaled-dot(x, y, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}"))
    x = np.zeros((4, 0), np.float32)
    assert not np.any(model(x, x.T.copy(), np.zeros((4, blocks), np.float32))[0])


def test_windows_of_large_kernels_are_estimated_once() -> None:
    node = read("x = f32[1,70000,1] parameter(0)\n w = f32[65536,1,1] parameter(1)\n"
                " ROOT d = f32[1,4465,1] convolution(x, w), window={size=65536}, dim_labels=b0f_0io->b0f").module().main().result()
    assert node.op is hlo.convolution and node.op.cost is not None
    assert node.op.cost(node) == 2.0 * 65536 * 4465
    assert calls_in(node.op.cost, node) < 1000


@pytest.mark.parametrize("text", [
    "x = f32[30000000,0,0] parameter(0)\n ROOT d = f32[30000000,0,0] cholesky(x), lower=true",
    "x = f32[0,9000000,9000000] parameter(0)\n y = f32[0,9000000,1] parameter(1)\n"
    " ROOT d = f32[0,9000000,1] triangular-solve(x, y), left_side=true, lower=true, transpose_a=NO_TRANSPOSE"])
def test_matrices_without_elements_take_no_time(text: str) -> None:
    graph = read(text).module().main()
    given = [np.zeros(t.dims(), np.float32) for p in graph.params for t in p.type.leaves() if isinstance(t, TensorType)]
    with within(2):
        evaluate(graph, given)


def test_states_of_random_bits_may_be_long() -> None:
    model = irscope.compile(read("x = u64[4000] parameter(0)\n ROOT d = (u64[4000], u32[4]) rng-bit-generator(x), algorithm=rng_philox"))
    after, _ = model(np.arange(4000, dtype=np.uint64))
    assert after[:2].tolist() == [0, 2] and after[3:].tolist() == list(range(3, 4000))


@pytest.mark.parametrize("config", ['"alpha_real":1e999', f'"alpha_real":1{"0" * 400}', '"alpha_real":0.5',
                                    '"dot_dimension_numbers":{"lhs_contracting_dimensions":[1e999]}'])
def test_library_calls_with_numbers_that_do_not_fit_stay(config: str) -> None:
    reading = read('x = s32[4,4] parameter(0)\n ROOT d = s32[4,4] custom-call(x, x), custom_call_target="__cublas$gemm", '
                   f'backend_config={{"gemm_backend_config":{{{config}}}}}')
    with pytest.raises(irscope.UserError, match="cannot run"):
        irscope.compile(reading)


def test_singular_vectors_of_no_rows() -> None:
    model = irscope.compile(read(
        'x = f32[0,3] parameter(0)\n ROOT d = (f32[0,3], f32[0], f32[0,0], f32[3,3], s32[]) custom-call(x), '
        'custom_call_target="lapack_sgesdd_ffi", api_version=API_VERSION_TYPED_FFI, backend_config={mode = 65 : ui8}'))
    vectors = model(np.zeros((0, 3), np.float32))[3]
    assert np.allclose(vectors @ vectors.T, np.eye(3))


def maps(levels: int, twice: bool) -> irscope.Reading:
    more = " y = f32[] map(x), to_apply=g{0}\n ROOT r = f32[] negate(y) }}\n" if twice else " ROOT r = f32[] negate(x) }}\n"
    text = "g0 { a = f32[] parameter(0)\n ROOT r = f32[] negate(a) }\n" + "".join(
        f"g{i} {{ a = f32[] parameter(0)\n x = f32[] map(a), to_apply=g{i - 1}\n" + more.format(i - 1) for i in range(1, levels))
    return read(f"x = f32[8] parameter(0)\n ROOT d = f32[8] map(x), dimensions={{0}}, to_apply=g{levels - 1}", text.replace("{{", "{"))


def test_maps_nest_as_deeply_as_they_like() -> None:
    reading, x = maps(600, twice=False), np.arange(8, dtype=np.float32)
    assert np.array_equal(irscope.compile(reading)(x)[0], x)
    assert np.array_equal(np.asarray(evaluate(reading.module().main(), [x])), x)


def test_maps_that_double_at_each_level_are_refused() -> None:
    with pytest.raises(irscope.UserError, match="makes more than 131,072 nodes"):
        irscope.compile(maps(40, twice=True))


def test_reductions_within_reductions_are_limited() -> None:
    def nested(levels: int) -> irscope.Reading:
        text = SUBTRACT + "".join(f"g{i} {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
                                  f" ROOT r = f32[] reduce(a, b), dimensions={{}}, to_apply=g{i - 1} }}\n" for i in range(1, levels))
        return read(f"x = f32[8] parameter(0)\n z = f32[] constant(0)\n ROOT d = f32[] reduce(x, z), dimensions={{0}}, "
                    f"to_apply=g{levels - 1}", text)

    irscope.compile(nested(40))
    with pytest.raises(irscope.UserError, match="levels of nested computations"):
        irscope.compile(nested(400))


@pytest.mark.parametrize("text", [
    'HloModule m\nENTRY e {\n x = f32[4] parameter(0)\n ROOT r = opaque[] custom-call(x), custom_call_target="foo"\n}',
    "HloModule m\nENTRY e {\n x = opaque[] parameter(0)\n y = f32[4] parameter(1)\n ROOT r = (f32[4], opaque[]) tuple(y, x)\n}",
    "func.func @main(%a: tensor<4xf32>) -> index {\n %0 = arith.constant 1 : index\n return %0 : index\n}"])
def test_results_that_are_no_arrays_are_refused(text: str) -> None:
    reading = irscope.load(text, format="hlo" if text.startswith("Hlo") else "stablehlo")
    with pytest.raises(irscope.UserError) as refusal:
        irscope.compile(reading)
    assert "is a result of the program, but no array" in refusal.value.findings[0].message


def test_operands_of_a_concatenation_are_converted_first() -> None:
    reading = read("x = f32[4] parameter(0)\n y = bf16[4] parameter(1)\n ROOT r = f32[16] concatenate(x, y, y, x), dimensions={0}")
    root = expand(reading.module()).main().result()
    assert [str(operand.type) for operand in root.operands] == ["f32[4]"] * 4, "one kernel would select among all operands for each element"
    x, y = np.arange(4, dtype=np.float32), np.arange(4).astype(DTYPES["bf16"].numpy())
    (found,) = irscope.compile(reading)(x, y)
    assert found.tolist() == [0, 1, 2, 3] * 4


@pytest.mark.parametrize("operand", ["f8e5m2", "f16", "bf16", "f32"])
@pytest.mark.parametrize(("opcode", "function"), [("exponential", np.exp), ("exponential-minus-one", np.expm1), ("log", np.log)])
def test_a_result_of_higher_precision_is_computed_in_it(operand: str, opcode: str, function: np.ufunc) -> None:
    """The operand's precision had no exponential of 15: the result was infinite, or rounded as the operand is."""
    text = f"HloModule m\nENTRY e {{\n  p = {operand}[] constant(14)\n  ROOT r = f64[] {opcode}(p)\n}}\n"
    assert irscope.run(text).outputs[0] == pytest.approx(function(14.0), rel=1e-12)
    assert np.asarray(evaluate(irscope.load(text).module().main(), [])) == pytest.approx(function(14.0), rel=1e-12)
