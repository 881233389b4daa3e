"""Programs of FX: higher-order operators, vmap, autocast, keyword operands, and operators that write; run compiled and by the reference."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from irscope.api import load
from irscope.backends.model import compile_module, ports_of
from irscope.backends.opening import Bindings, opened
from irscope.expand import bind_types, expand
from irscope.lower.options import Options
from irscope.source import UserError
from tests.lower.whole import reference

Array = np.ndarray[Any, Any]


def run(text: str, **arrays: Any) -> list[Array]:
    """What a printed graph module gives, which the compiled code and the reference agree on."""
    reading = load(text)
    assert reading.ok, [f.render() for f in reading.findings]
    given = {name: np.asarray(a) for name, a in arrays.items()}
    made = opened(reading.module(), Bindings(given, {}, {}), None)
    operands = [given[port.name] for port in ports_of(made)[0]]
    expected = reference(made, operands)
    for got, want in zip(compile_module(made, {}, Options(threads=1), use_cache=False)(*operands), expected, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-5, atol=1e-6)
    return expected


def module(inputs: str, body: str, graphs: str = "") -> str:
    """The text of a graph module: its inputs, the statements of ``forward``, and its inner classes."""
    lines = "\n".join("        " + line.strip() for line in body.strip().splitlines())
    return f"class GraphModule(torch.nn.Module):\n    def forward(self, {inputs}):\n{lines}\n{graphs}"


def inner(name: str, inputs: str, body: str) -> str:
    """The text of an inner class."""
    lines = "\n".join("            " + line.strip() for line in body.strip().splitlines())
    return f"\n    class {name}(torch.nn.Module):\n        def forward(self, {inputs}):\n{lines}\n"


X = np.array([[1.0, -2.0, 3.0], [0.5, 0.25, -1.0]], np.float32)

COND = module('x: "f32[2, 3]"', """
    sum_1: "f32[]" = torch.ops.aten.sum.default(x)
    gt: "b8[]" = torch.ops.aten.gt.Scalar(sum_1, 0)
    true_graph_0 = self.true_graph_0
    false_graph_0 = self.false_graph_0
    cond = torch.ops.higher_order.cond(gt, true_graph_0, false_graph_0, (x,))
    getitem: "f32[2, 3]" = cond[0]
    return (getitem,)
    """, inner("true_graph_0", 'x: "f32[2, 3]"', """
    sin: "f32[2, 3]" = torch.ops.aten.sin.default(x)
    return (sin,)
    """) + inner("false_graph_0", 'x: "f32[2, 3]"', """
    cos: "f32[2, 3]" = torch.ops.aten.cos.default(x)
    return (cos,)
    """))


@pytest.mark.parametrize("sign", [1, -1])
def test_cond_runs_the_graph_of_its_condition(sign: int) -> None:
    np.testing.assert_allclose(run(COND, x=sign * X)[0], np.sin(X) if sign > 0 else np.cos(-X), rtol=1e-5, atol=1e-6)


def test_cond_without_its_graphs_is_refused() -> None:
    text = """graph():
    %x : [num_users=1] = placeholder[target=x]
    %gt : [num_users=1] = call_function[target=torch.ops.aten.any.default](args = (%x,), kwargs = {})
    %true_graph_0 : [num_users=1] = get_attr[target=true_graph_0]
    %false_graph_0 : [num_users=1] = get_attr[target=false_graph_0]
    %cond : [num_users=1] = call_function[target=torch.ops.higher_order.cond](args = (%gt, %true_graph_0, %false_graph_0, (%x,)), kwargs = {})
    return (cond,)"""
    with pytest.raises(UserError, match=r"not in the text \(true_graph_0\)"):
        run(text, x=X)


WHILE = module('i: "i64[]", x: "f32[3]"', """
    while_loop_cond_graph_0 = self.while_loop_cond_graph_0
    while_loop_body_graph_0 = self.while_loop_body_graph_0
    while_loop = torch.ops.higher_order.while_loop(while_loop_cond_graph_0, while_loop_body_graph_0, (i, x), ())
    getitem: "i64[]" = while_loop[0]
    getitem_1: "f32[3]" = while_loop[1]
    return (getitem, getitem_1)
    """, inner("while_loop_cond_graph_0", 'i: "i64[]", x: "f32[3]"', """
    lt: "b8[]" = torch.ops.aten.lt.Scalar(i, 5)
    return lt
    """) + inner("while_loop_body_graph_0", 'i: "i64[]", x: "f32[3]"', """
    add: "i64[]" = torch.ops.aten.add.Tensor(i, 1)
    mul: "f32[3]" = torch.ops.aten.mul.Tensor(x, 2.0)
    return (add, mul)
    """))


def test_while_loop_ends_by_data() -> None:
    count, x = run(WHILE, i=np.int64(2), x=X[0])
    assert count == 5
    np.testing.assert_allclose(x, X[0] * 8)


def scan(rows: int) -> str:
    return module(f'x: "f32[{rows}, 3]"', f"""
    zeros: "f32[3]" = torch.ops.aten.zeros.default([3], device = device(type='cpu'), pin_memory = False)
    scan_combine_graph_0 = self.scan_combine_graph_0
    scan = torch.ops.higher_order.scan(scan_combine_graph_0, [zeros], [x], ())
    getitem: "f32[3]" = scan[0]
    getitem_1: "f32[{rows}, 3]" = scan[1]
    return (getitem, getitem_1)
    """, inner("scan_combine_graph_0", 'arg0_1: "f32[3]", arg1_1: "f32[3]"', """
    mul: "f32[3]" = torch.ops.aten.mul.Tensor(arg0_1, 0.5)
    add: "f32[3]" = torch.ops.aten.add.Tensor(mul, arg1_1)
    mul_1: "f32[3]" = torch.ops.aten.mul.Tensor(add, 2)
    return [add, mul_1]
    """))


@pytest.mark.parametrize("rows", [4, 300])  # unrolled, and as a loop
def test_scan_passes_values_from_row_to_row(rows: int) -> None:
    x = np.random.default_rng(0).standard_normal((rows, 3)).astype(np.float32)
    last, each = run(scan(rows), x=x)
    state, wanted = np.zeros(3, np.float32), []
    for part in x:
        state = state * np.float32(0.5) + part
        wanted.append(2 * state)
    np.testing.assert_allclose(last, state, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(each, np.stack(wanted), rtol=1e-5, atol=1e-6)


def test_map_runs_a_graph_for_each_row() -> None:
    text = module('x: "f32[2, 3]", y: "f32[3]"', """
    body_graph_0 = self.body_graph_0
    map_impl = torch.ops.higher_order.map_impl(body_graph_0, [x], [y])
    getitem: "f32[2]" = map_impl[0]
    return (getitem,)
    """, inner("body_graph_0", 'arg0_1: "f32[3]", arg1_1: "f32[3]"', """
    dot: "f32[]" = torch.ops.aten.dot.default(arg0_1, arg1_1)
    return (dot,)
    """))
    np.testing.assert_allclose(run(text, x=X, y=X[0])[0], X @ X[0], rtol=1e-5)


def test_associative_scan_gives_running_results() -> None:
    text = module('x: "f32[4, 3]"', """
    combine_graph_0 = self.combine_graph_0
    associative_scan = torch.ops.higher_order.associative_scan(combine_graph_0, [x], ())
    getitem: "f32[4, 3]" = associative_scan[0]
    return (getitem,)
    """, inner("combine_graph_0", 'arg0_1: "f32[3]", arg1_1: "f32[3]"', """
    mul: "f32[3]" = torch.ops.aten.mul.Tensor(arg0_1, arg1_1)
    return [mul]
    """))
    x = np.arange(12, dtype=np.float32).reshape(4, 3) / 4
    np.testing.assert_allclose(run(text, x=x)[0], np.cumprod(x, 0), rtol=1e-5)


def test_vmap_works_on_rows() -> None:
    """An elementwise operator takes all rows at once, a product of matrices one after the other."""
    space = "torch._functorch.predispatch"
    text = module('x: "f32[2, 3]", w: "f32[3, 3]"', f"""
    _vmap_increment_nesting = {space}._vmap_increment_nesting(2, 'error');  _vmap_increment_nesting = None
    row: "f32[3]" = {space}._add_batch_dim(x, 0, 1)
    mul: "f32[3]" = torch.ops.aten.mul.Tensor(row, 2.0)
    mv: "f32[3]" = torch.ops.aten.mv.default(w, mul)
    rows: "f32[3, 2]" = {space}._remove_batch_dim(mv, 1, 2, 1)
    _vmap_decrement_nesting = {space}._vmap_decrement_nesting();  _vmap_decrement_nesting = None
    return (rows,)
    """)
    w = np.arange(9, dtype=np.float32).reshape(3, 3)
    np.testing.assert_allclose(run(text, x=X, w=w)[0], w @ (2 * X).T, rtol=1e-5)


def test_flexible_attention_runs_its_graphs_over_all_scores() -> None:
    text = module('q: "f32[1, 2, 4, 3]", k: "f32[1, 2, 4, 3]", v: "f32[1, 2, 4, 3]", bias: "f32[2]"', """
    sdpa_score0 = self.sdpa_score0
    sdpa_mask0 = self.sdpa_mask0
    flex_attention = torch.ops.higher_order.flex_attention(q, k, v, sdpa_score0, (4, 4, None, None, 128, 128, sdpa_mask0), 0.5, {'OUTPUT_MAX': False}, (bias,), ())
    getitem: "f32[1, 2, 4, 3]" = flex_attention[0]
    return (getitem,)
    """, inner("sdpa_score0", 'score: "f32[]", b: "i32[]", h: "i32[]", row: "i32[]", column: "i32[]", bias: "f32[2]"', """
    index: "f32[]" = torch.ops.aten.index.Tensor(bias, [h])
    sub: "i32[]" = torch.ops.aten.sub.Tensor(row, column)
    mul: "f32[]" = torch.ops.aten.mul.Tensor(index, sub)
    add: "f32[]" = torch.ops.aten.add.Tensor(score, mul)
    return add
    """) + inner("sdpa_mask0", 'b: "i32[]", h: "i32[]", row: "i32[]", column: "i32[]"', """
    ge: "b8[]" = torch.ops.aten.ge.Tensor(row, column)
    return ge
    """))
    rng = np.random.default_rng(2)
    q, k, v = (rng.standard_normal((1, 2, 4, 3)).astype(np.float32) for _ in range(3))
    bias = np.array([0.25, -1.0], np.float32)
    away = np.arange(4)[:, None] - np.arange(4)[None, :]
    scores = np.where(away >= 0, q @ k.swapaxes(-1, -2) * 0.5 + bias[None, :, None, None] * away, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(run(text, q=q, k=k, v=v, bias=bias)[0], weights / weights.sum(-1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)


def test_nested_vmaps_have_levels() -> None:
    space = "torch._functorch.predispatch"
    text = module('x: "f32[2, 3, 4]", y: "f32[3, 4]"', f"""
    a: "f32[3, 4]" = {space}._add_batch_dim(x, 0, 1)
    b: "f32[4]" = {space}._add_batch_dim(a, 0, 2)
    c: "f32[4]" = {space}._add_batch_dim(y, 0, 2)
    mul: "f32[4]" = torch.ops.aten.mul.Tensor(b, c)
    new_zeros: "f32[4]" = torch.ops.aten.new_zeros.default(mul, [4])
    copy_: "f32[4]" = torch.ops.aten.copy_.default(new_zeros, mul)
    sum_1: "f32[]" = torch.ops.aten.sum.default(copy_)
    inner_rows: "f32[3]" = {space}._remove_batch_dim(sum_1, 2, 3, 0)
    rows: "f32[3, 2]" = {space}._remove_batch_dim(inner_rows, 1, 2, 1)
    return (rows,)
    """)
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    y = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(run(text, x=x, y=y)[0], (x * y).sum(-1).T)


def test_autocast_lowers_products_and_keeps_the_rest() -> None:
    text = module('x: "f32[2, 3]", w: "f32[3, 3]"', """
    submod_1 = self.submod_1
    wrap = torch.ops.higher_order.wrap_with_autocast('cpu', torch.bfloat16, True, False, submod_1, x, w)
    getitem: "bf16[2, 3]" = wrap[0]
    getitem_1: "f32[2, 3]" = wrap[1]
    return (getitem, getitem_1)
    """, inner("submod_1", 'x: "f32[2, 3]", w: "f32[3, 3]"', """
    mm: "bf16[2, 3]" = torch.ops.aten.mm.default(x, w)
    exp: "f32[2, 3]" = torch.ops.aten.exp.default(x)
    return (mm, exp)
    """))
    w = np.eye(3, dtype=np.float32)
    product, exponential = run(text, x=X, w=w)
    assert product.dtype == ml_dtypes.bfloat16
    assert exponential.dtype == np.float32
    np.testing.assert_allclose(product.astype(np.float32), X, rtol=1e-2)


def test_training_batch_norm_writes_the_running_statistics() -> None:
    text = module('x: "f32[4, 2]", mean: "f32[2]", var: "f32[2]"', """
    batch_norm: "f32[4, 2]" = torch.ops.aten.batch_norm.default(x, None, None, mean, var, True, 0.1, 1e-05, True)
    add: "f32[2]" = torch.ops.aten.add.Tensor(mean, 0)
    add_1: "f32[2]" = torch.ops.aten.add.Tensor(var, 0)
    return (batch_norm, add, add_1)
    """)
    x = np.random.default_rng(1).standard_normal((4, 2)).astype(np.float32)
    y, mean, var = run(text, x=x, mean=np.ones(2, np.float32), var=np.ones(2, np.float32))
    np.testing.assert_allclose(y, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean, 0.9 + 0.1 * x.mean(0), rtol=1e-5)
    np.testing.assert_allclose(var, 0.9 + 0.1 * x.var(0, ddof=1), rtol=1e-5)


def test_lists_of_tensors_are_written_in_place() -> None:
    text = module('x: "f32[3]", y: "f32[2, 3]"', """
    _foreach_mul_ = torch.ops.aten._foreach_mul_.Scalar([x, y], 3.0);  _foreach_mul_ = None
    add: "f32[2, 3]" = torch.ops.aten.add.Tensor(y, x)
    return (add,)
    """)
    np.testing.assert_allclose(run(text, x=X[0], y=X)[0], 3 * X + 3 * X[0], rtol=1e-5)


def test_numbers_stand_for_tensors_and_keywords_have_any_order() -> None:
    text = module('x: "i64[3]"', """
    sub: "f32[3]" = torch.ops.aten.sub.Tensor(1.5, x)
    scalar_tensor: "f32[]" = torch.ops.aten.scalar_tensor.default(2, dtype = torch.float32, layout = torch.strided, device = device(type='cpu'))
    mul: "f32[3]" = torch.ops.aten.mul.Tensor(sub, scalar_tensor)
    to: "f16[3]" = torch.ops.aten._to_copy.default(mul, dtype = torch.float16)
    return (mul, to)
    """)
    wide, narrow = run(text, x=np.array([1, 2, 3]))
    assert wide.dtype == np.float32
    np.testing.assert_allclose(wide, [1, -1, -3])
    assert narrow.dtype == np.float16


def test_effects_pass_a_token_on() -> None:
    text = module('token: "f32[0]", a: "f32[2, 2]"', """
    linalg_inv_ex = torch.ops.aten.linalg_inv_ex.default(a)
    getitem: "f32[2, 2]" = linalg_inv_ex[0]
    getitem_1: "i32[]" = linalg_inv_ex[1]
    with_effects = torch.ops.higher_order.with_effects(token, torch.ops.aten._linalg_check_errors.default, getitem_1, 'inv', is_matrix = True)
    getitem_2: "f32[0]" = with_effects[0]
    return (getitem_2, getitem)
    """)
    token, inverse = run(text, token=np.zeros(0, np.float32), a=np.diag([2.0, 4.0]).astype(np.float32))
    assert token.shape == (0,)
    np.testing.assert_allclose(inverse, np.diag([0.5, 0.25]))


def test_random_numbers_have_types_and_no_values() -> None:
    text = module('x: "f32[3]"', """
    native_dropout = torch.ops.aten.native_dropout.default(x, 0.5, True)
    getitem: "f32[3]" = native_dropout[0]
    return (getitem,)
    """)
    made = opened(load(text).module(), Bindings({"x": X[0]}, {}, {}), None)
    assert any(node.op.name == "rng" for node in made.main().nodes)
    with pytest.raises(UserError) as refused:
        compile_module(made, {}, Options(threads=1), use_cache=False)
    assert "call eval()" in refused.value.findings[0].help


@pytest.mark.parametrize(("name", "expected"), [
    ("silu", [-0.142578125, -0.279296875, -0.232421875, 0.1728515625, 0.828125, 2.53125]),
    ("gelu", [-0.004058837890625, -0.1259765625, -0.1689453125, 0.185546875, 0.953125, 2.6875]),
    ("mish", [-0.1455078125, -0.306640625, -0.267578125, 0.208984375, 0.97265625, 2.6875]),
    ("softplus", [0.048583984375, 0.2412109375, 0.404296875, 0.85546875, 1.390625, 2.765625]),
    ("hardswish", [-0.0, -0.3671875, -0.267578125, 0.1650390625, 0.75390625, 2.5625]),
])
def test_activations_of_half_types_round_once(name: str, expected: list[float]) -> None:
    """The values are torch's, bit by bit."""
    x = np.array([-3.0, -1.3, -0.7, 0.3, 1.1, 2.7], ml_dtypes.bfloat16)
    made = run(module('x: "bf16[6]"', f'y: "bf16[6]" = torch.ops.aten.{name}.default(x)\nreturn (y,)'), x=x)
    assert made[0].astype(np.float64).tolist() == expected


@pytest.mark.parametrize(("target", "reduction", "expected"), [
    ([2, 0, 1], 1, 0.4677), ([2, -100, 1], 1, 0.4305), ([2, 0, 1], 0, [0.4782, 0.3457, 0.8132]),
])
def test_cross_entropy_with_class_weights_and_label_smoothing(target: list[int], reduction: int, expected: float | list[float]) -> None:
    """The values are torch's; a mean is by the weights of the targets."""
    body = f'loss = torch.ops.aten.cross_entropy_loss.default(x, t, w, {reduction}, -100, 0.1)\nreturn (loss,)'
    x = np.array([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75], [-2.0, 1.0, 0.125]], np.float32)
    made = run(module('x: "f32[3, 3]", t: "i64[3]", w: "f32[3]"', body), x=x, t=np.array(target), w=np.array([0.5, 2.0, 1.0], np.float32))
    np.testing.assert_allclose(made[0], expected, atol=5e-5)


def test_rrelu_in_evaluation_gives_its_noise_back() -> None:
    body = "r = torch.ops.aten.rrelu_with_noise_functional.default(x, n)\na = r[0]\nb = r[1]\nreturn (a, b)"
    made = run(module('x: "f32[2, 3]", n: "f32[2, 3]"', body), x=X, n=X)
    np.testing.assert_allclose(made[0], np.where(X > 0, X, X * (0.125 + 1 / 3) / 2), rtol=1e-6)
    np.testing.assert_array_equal(made[1], X)


SYMBOLS = '''\
class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "Sym(s77)", arg1_1: "f32[s77, 4]", arg2_1: "f32[s77]"):
        view: "f32[s77, 1]" = torch.ops.aten.view.default(arg2_1, [arg0_1, 1]);  arg2_1 = arg0_1 = None
        mul: "f32[s77, 4]" = torch.ops.aten.mul.Tensor(arg1_1, view);  arg1_1 = view = None
        return (mul,)
'''


def test_symbols_have_the_sizes_of_the_inputs() -> None:
    """Graphs of torch.compile take their symbolic sizes as further inputs."""
    read = load(SYMBOLS).module()
    bound = expand(bind_types(read, {"arg1_1": (3, 4)}), outline=True)
    assert [str(p.type) for p in bound.main().params] == ["f32[3,4]", "f32[3]"]
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(run(SYMBOLS, arg1_1=x, arg2_1=y)[0], x * y[:, None])
    with pytest.raises(UserError, match="arg0_1 is a number"):
        expand(read)


SPACE = "torch._functorch.predispatch"


def vmapped(body: str, inputs: str = 'x: "f32[2, 3]", y: "f32[3]"', back: str = "1, 2, 0", result: str = "f32[2, 3]") -> str:
    """Statements over the rows of %x, %row, that make %made."""
    return module(inputs, f"""
    row = {SPACE}._add_batch_dim(x, 0, 1)
    {body}
    rows: "{result}" = {SPACE}._remove_batch_dim(made, {back})
    return (rows,)
    """)


Y = np.array([1.0, 2.0, 4.0], np.float32)


@pytest.mark.parametrize(("body", "want"), [
    ('made: "f32[3]" = torch.ops.aten.neg.default(y)', np.stack([-Y, -Y])),
    ('parts = torch.ops.aten.split.Tensor(row, 2)\n a: "f32[2]" = parts[0]\n b: "f32[1]" = parts[1]\n made: "f32[3]" = torch.ops.aten.cat.default([b, a])',
     X[:, [2, 0, 1]]),
    ('made: "f32[3]" = torch.ops.aten.cat.default([row, y])', np.concatenate([X, np.stack([Y, Y])], 1)),
    ('n = torch.ops.aten.sym_size.int(row, 0)\n made: "f32[3]" = torch.ops.aten.mul.Tensor(row, n)', X * 3),
    ('mul_ = torch.ops.aten.mul_.Tensor(row, y);  mul_ = None\n made: "f32[3]" = torch.ops.aten.neg.default(row)', -X * Y),
], ids=["what reads no row", "lists", "a list of rows and others", "sizes", "rows written in place"])
def test_operators_on_rows(body: str, want: Array) -> None:
    found = run(vmapped(body, result=f"f32[{want.shape[0]}, {want.shape[1]}]"), x=X, y=Y)[0]
    np.testing.assert_allclose(found, want)


@pytest.mark.parametrize(("body", "want"), [
    ('parts = torch.ops.aten.split.Tensor(row, 2)\n made: "f32[1]" = parts[1]', X[:1, 2:]),
    ('n = torch.ops.aten.sym_size.int(row, 0)\n made: "f32[3]" = torch.ops.aten.mul.Tensor(row, n)', X[:1] * 3),
    ('made: "f32[1]" = torch.ops.aten.mv.default(y, row)', X[:1] @ np.ones((3, 1), np.float32)),
], ids=["lists", "sizes", "a product"])
def test_a_vmap_over_one_row(body: str, want: Array) -> None:
    text = vmapped(body, 'x: "f32[1, 3]", y: "f32[1, 3]"', "1, 1, 0", f"f32[1, {want.shape[1]}]")
    np.testing.assert_allclose(run(text, x=X[:1], y=np.ones((1, 3), np.float32))[0], want)


def test_elementwise_operators_take_all_rows_at_once() -> None:
    """Others go row by row: there are as many products as rows."""
    text = vmapped('mul: "f32[3]" = torch.ops.aten.mul.Tensor(row, row)\n made: "f32[3]" = torch.ops.aten.mv.default(y, mul)', 'x: "f32[2, 3]", y: "f32[3, 3]"')
    arrays = {"x": X, "y": np.eye(3, dtype=np.float32)}
    names = [node.op.name for node in opened(load(text).module(), Bindings(arrays, {}, {}), None).main().nodes]
    assert (names.count("multiply"), names.count("dot")) == (1, 2)


def test_a_vmap_over_no_rows_has_the_type_that_the_text_says() -> None:
    text = vmapped('made: "f32[3]" = torch.ops.aten.mv.default(y, row)', 'x: "f32[0, 3]", y: "f32[3, 3]"', "1, 0, 0", "f32[0, 3]")
    assert run(text, x=np.zeros((0, 3), np.float32), y=np.eye(3, dtype=np.float32))[0].shape == (0, 3)
    with pytest.raises(UserError, match="over no rows makes something whose type the text does not say"):
        run(text.replace('made: "f32[3]"', "made"), x=np.zeros((0, 3), np.float32), y=np.eye(3, dtype=np.float32))


def within_autocast(device: str, body: str, results: str, dtype: str = "torch.bfloat16") -> str:
    return module('x: "f32[2, 3]", w: "f32[3, 3]", n: "i64[2, 3]"', f"""
    submod_1 = self.submod_1
    wrap = torch.ops.higher_order.wrap_with_autocast('{device}', {dtype}, True, False, submod_1, x, w, n)
    getitem = wrap[0]
    return (getitem,)
    """, inner("submod_1", 'x: "f32[2, 3]", w: "f32[3, 3]", n: "i64[2, 3]"', f"""
    mm: "bf16[2, 3]" = torch.ops.aten.mm.default(x, w)
    {body}
    return ({results},)
    """))


@pytest.mark.parametrize(("device", "body", "want"), [
    ("cpu", "made = torch.ops.aten.cat.default([mm, x])", "float32"), ("cpu", "made = torch.ops.aten.cat.default([mm, mm])", "bfloat16"),
    ("cpu", "made = torch.ops.aten.cat.default([n, n])", "int64"), ("cpu", "made = torch.ops.aten.stack.default([x, mm])", "float32"),
    ("cuda", "made = torch.ops.aten.atan2.default(mm, x)", "float32"), ("cuda", "made = torch.ops.aten.atan2.default(mm, mm)", "bfloat16"),
    ("cuda", "made = torch.ops.aten.exp.default(mm)", "float32"), ("cpu", "made = torch.ops.aten.exp.default(mm)", "bfloat16"),
    ("cuda", "made = torch.ops.aten.cumsum.default(n, 0)", "int64"), ("cpu", "made = torch.ops.aten.trace.default(mm)", "float32"),
    ("cpu", "wide = torch.ops.aten.to.dtype(x, torch.float64)\n turned = torch.ops.aten.t.default(wide)\n made = torch.ops.aten.mm.default(wide, turned)", "float64"),
])
def test_element_types_within_autocast(device: str, body: str, want: str) -> None:
    """Lower types for products, float32 for some, the widest of their operands for others; integers and float64 stay as they are."""
    rng = np.random.default_rng(0)
    text = within_autocast(device, body, "made")
    found = run(text, x=rng.integers(-3, 4, (2, 3)).astype(np.float32), w=np.eye(3, dtype=np.float32), n=np.arange(6).reshape(2, 3))[0]
    assert str(found.dtype) == want


def test_a_region_casts_the_tensors_of_lists() -> None:
    """The product is rounded to bfloat16; beside x it is float32 again, and x keeps its digits."""
    x = np.array([[1.001, 2, 3], [4, 5, 6]], np.float32)
    text = within_autocast("cpu", "made = torch.ops.aten.cat.default([mm, x])", "made")
    found = run(text, x=x, w=np.eye(3, dtype=np.float32), n=np.zeros((2, 3), np.int64))[0]
    assert found[2:].tolist() == x.tolist() and found[0, 0] == 1


def test_values_at_the_border_of_a_module_pass() -> None:
    text = module('x: "f32[2, 3]"', """
    _export_tracepoint = torch.ops.higher_order._export_tracepoint(x, kind = 'module_call_inputs', path = 'net')
    getitem: "f32[2, 3]" = _export_tracepoint[0]
    neg: "f32[2, 3]" = torch.ops.aten.neg.default(getitem)
    return (neg,)
    """)
    np.testing.assert_array_equal(run(text, x=X)[0], -X)


def test_the_tensors_that_a_list_operator_writes_are_its_result() -> None:
    text = module('x: "f32[3]", y: "f32[2, 3]"', """
    _foreach_mul_ = torch.ops.aten._foreach_mul_.Scalar([x, y], 3.0)
    getitem: "f32[3]" = _foreach_mul_[0]
    add: "f32[2, 3]" = torch.ops.aten.add.Tensor(y, getitem)
    return (add,)
    """)
    np.testing.assert_allclose(run(text, x=X[0], y=X)[0], 3 * X + 3 * X[0], rtol=1e-5)
