"""Texts on which fusion policies once raised, or took time that grew faster than the text."""
from __future__ import annotations

import pytest

import irscope
from irscope.fusion.canonicalise import canonicalise
from irscope.fusion.canonicalise.computation import HloComputation
from irscope.fusion.canonicalise.values import MAX_SIGNS, is_non_negative
from irscope.graph import Module
from irscope.lint.fusion import plans

ADD = "add { x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT s = s32[] add(x, y) }\n"
POLICIES = ("xla-cpu", "xla-gpu")


def module(entry: str, result: str, parameters: str, more: str = "") -> Module:
    """A text as XLA prints it before its passes, so that the policies rewrite it."""
    head = f"HloModule m, entry_computation_layout={{({parameters})->{result}}}\n"
    return irscope.load(f"{head}{more}ENTRY e {{\n{entry} }}\n", format="hlo").module()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_value_concatenated_with_itself_forty_times(policy: str) -> None:
    lines = [f" c{i + 1} = f32[{2 ** (i + 1)}] concatenate(c{i}, c{i}), dimensions={{0}}" for i in range(40)]
    assert plans(module("\n".join([" c0 = f32[1] parameter(0)", *lines, f" ROOT r = f32[{2 ** 40}] negate(c40)"]),
                        f"f32[{2 ** 40}]{{0}}", "f32[1]{0}"), policy)


@pytest.mark.parametrize("policy", POLICIES)
def test_an_empty_slice_of_a_concatenation(policy: str) -> None:
    assert plans(module(" a = f32[4] parameter(0)\n c = f32[8] concatenate(a, a), dimensions={0}\n s = f32[0] slice(c), slice={[0:0]}\n"
                        " ROOT r = f32[0] negate(s)", "f32[0]{0}", "f32[4]{0}"), policy)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_scatter_into_a_scalar(policy: str) -> None:
    assert plans(module(" t = s32[] parameter(0)\n i = s32[0] parameter(1)\n u = s32[] parameter(2)\n ROOT r = s32[] scatter(t, i, u), "
                        "update_window_dims={}, inserted_window_dims={}, scatter_dims_to_operand_dims={}, index_vector_dim=0, to_apply=add",
                        "s32[]", "s32[], s32[0]{0}, s32[]", ADD), policy)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_sum_of_more_equal_elements_than_64_bits_count(policy: str) -> None:
    big = 2 ** 32
    assert plans(module(f" a = s32[3] parameter(0)\n z = s32[] constant(0)\n b = s32[3,{big},{big},4] broadcast(a), dimensions={{0}}\n"
                        " ROOT r = s32[3] reduce(b, z), dimensions={1,2,3}, to_apply=add", "s32[3]{0}", "s32[3]{0}", ADD), policy)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_product_of_a_known_and_an_unknown_batch(policy: str) -> None:
    assert plans(module(" a = f32[8,4,4] parameter(0)\n b = f32[?,4,1] parameter(1)\n ROOT d = f32[8,4,1] dot(a, b), lhs_batch_dims={0}, "
                        "rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
                        "f32[8,4,1]{2,1,0}", "f32[8,4,4]{2,1,0}, f32[?,4,1]{2,1,0}"), policy)


def loop(condition: str, body: str, carried: str, inputs: str) -> Module:
    more = f"c {{ p = {carried} parameter(0)\n{condition} }}\nb {{ p = {carried} parameter(0)\n{body} }}\n"
    return module(f" z = s32[] constant(0)\n x = f32[8] parameter(0)\n t = {carried} tuple({inputs})\n"
                  f" w = {carried} while(t), condition=c, body=b\n u = f32[8] get-tuple-element(w), index=0\n"
                  " v = f32[8] get-tuple-element(w), index=1\n ROOT r = f32[8] add(u, v)", "f32[8]{0}", "f32[8]{0}", more)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_loop_that_compares_an_element_of_another_tuple(policy: str) -> None:
    assert plans(loop(' q = (s32[], s32[], s32[], s32[]) custom-call(), custom_call_target="x"\n i = s32[] get-tuple-element(q), index=3\n'
                      " n = s32[] constant(5)\n ROOT r = pred[] compare(i, n), direction=LT",
                      " i = s32[] get-tuple-element(p), index=2\n x = f32[8] get-tuple-element(p), index=0\n o = s32[] constant(1)\n"
                      " j = s32[] add(i, o)\n y = f32[8] tanh(x)\n z = f32[8] sine(y)\n ROOT t = (f32[8], f32[8], s32[]) tuple(y, z, j)",
                      "(f32[8], f32[8], s32[])", "x, x, z"), policy)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_loop_whose_instructions_read_a_thousand_operands(policy: str) -> None:
    many = 1000
    call = 'custom-call({}), custom_call_target="y"'
    assert plans(loop(' ROOT r = pred[] custom-call(), custom_call_target="x"',
                      " x = f32[8] get-tuple-element(p), index=0\n y = f32[8] get-tuple-element(p), index=1\n"
                      f" a = f32[8] {call.format(','.join(['x'] * many))}\n b = f32[8] {call.format(','.join(['a'] * many))}\n"
                      f" d = f32[8] {call.format(','.join(['b'] * many))}\n ROOT t = (f32[8], f32[8]) tuple(x, d)",
                      "(f32[8], f32[8])", "x, x"), policy)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_dead_loop_of_a_thousand_nested_ones(policy: str) -> None:
    inner = [f"g{i} {{ x = f32[8] parameter(0)\n ROOT r = f32[8] while(x), condition=c, body=g{i - 1} }}" for i in range(1, 600)]
    more = "\n".join(['c { x = f32[8] parameter(0)\n ROOT t = pred[] custom-call(x), custom_call_target="q" }',
                      "g0 { x = f32[8] parameter(0)\n ROOT r = f32[8] negate(x) }", *inner, ""])
    assert plans(module(" x = f32[8] parameter(0)\n w = f32[8] while(x), condition=c, body=g599\n ROOT r = f32[8] negate(x)",
                        "f32[8]{0}", "f32[8]{0}", more), policy)


@pytest.mark.parametrize("policy", POLICIES)
def test_thousands_of_nested_fusions_between_kernels(policy: str) -> None:
    inner = [f"g{i} {{ x = f32[8] parameter(0)\n ROOT r = f32[8] fusion(x), kind=kLoop, calls=g{i - 1} }}" for i in range(1, 1300)]
    text = "\n".join(["HloModule m", "g0 { x = f32[8] parameter(0)\n ROOT r = f32[8] negate(x) }", *inner,
                      "ENTRY e { x = f32[8] parameter(0)\n w = f32[8] fusion(x), kind=kLoop, calls=g1299\n v = f32[8] tanh(w)",
                      " ROOT r = f32[8] negate(v) }"])
    assert plans(irscope.load(text, format="hlo").module(), policy)


def test_a_kernel_that_computes_a_value_more_often_than_floats_count() -> None:
    steps = 1100
    lines = [f" r{i} = f32[8] reverse(n{i}), dimensions={{0}}\n {'ROOT ' * (i == steps - 1)}n{i + 1} = f32[8] add(n{i}, r{i})"
             for i in range(steps)]
    text = "\n".join(["HloModule m", "g { n0 = f32[8] parameter(0)", *lines, "}", "ENTRY e { x = f32[8] parameter(0)",
                      " a = f32[8] negate(x)\n w = f32[8] fusion(a), kind=kLoop, calls=g\n ROOT v = f32[8] tanh(w) }"])
    assert plans(irscope.load(text, format="hlo").module(), "xla-gpu")


def test_the_sign_of_a_long_chain_is_not_looked_up() -> None:
    def sign(steps: int) -> bool:
        lines = [f" m{i} = f32[8] maximum(m{i - 1}, p{i % 2})" for i in range(1, steps)]
        made = module("\n".join([" p0 = f32[8] parameter(0)\n p1 = f32[8] parameter(1)\n m0 = f32[8] abs(p0)", *lines,
                                 f" ROOT r = f32[8] tanh(m{steps - 1})"]), "f32[8]{0}", "f32[8]{0}, f32[8]{0}")
        root = HloComputation.of(made.main()).root.operands[0]
        return is_non_negative(root)

    assert sign(MAX_SIGNS - 4)
    assert not sign(MAX_SIGNS + 4)


def test_calls_that_double_at_each_level_are_refused() -> None:
    inner = [f"g{i} {{ x = f32[8] parameter(0)\n a = f32[8] call(x), to_apply=g{i - 1}\n ROOT b = f32[8] call(a), to_apply=g{i - 1} }}"
             for i in range(1, 16)]
    made = module(" x = f32[8] parameter(0)\n ROOT r = f32[8] call(x), to_apply=g15", "f32[8]{0}", "f32[8]{0}",
                  "\n".join(["g0 { x = f32[8] parameter(0)\n ROOT r = f32[8] tanh(x) }", *inner, ""]))
    with pytest.raises(irscope.UserError, match="written out"):
        canonicalise(made)
