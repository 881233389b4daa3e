"""Passes and the inlining of calls: primitives in Relay that do not fit, and texts that grow or took too long."""
from __future__ import annotations

import gc

import pytest

import irscope
from irscope.analysis.constant import computed_early
from irscope.analysis.trips import trip_count
from irscope.expand.expand import inline
from irscope.graph import DynamicDim, Module, Reading, TensorType, collector, rewrite_module
from irscope.graph.collector import collector_paused
from irscope.graph.dtypes import F32
from irscope.passes import fold_constants, pass_named
from irscope.passes.fold_scale_axes import _size
from tests.effort import calls_in, within

X = "%x: Tensor[(2, 3), float32]"
T = "/* ty=Tensor[(2, 3), float32] */"


def read(body: str, before: str = "") -> Reading:
    return irscope.load(f"{before}def @main({X}) {{ {body} }}\n", format="relay")


@pytest.mark.parametrize("body, message", [
    ("hlo.constant() /* ty=Tensor[(2), float32] */", "a constant needs value="),
    ('hlo.constant(data="abc") /* ty=Tensor[(2), float32] */', "Incorrect padding"),
    ("hlo.constant(data=5) /* ty=Tensor[(2), float32] */", "data is a string"),
    ('hlo.constant(data="AAAA") /* ty=Tensor[(2), float32] */', "3 bytes"),
    ('hlo.constant(value="abc") /* ty=Tensor[(2), float32] */', "contains numbers"),
    ("hlo.constant(value=[[1], [2, 3]]) /* ty=Tensor[(2), float32] */", "3 elements"),
    ("hlo.constant(value=[300]) /* ty=Tensor[(1), int8] */", "300 does not fit s8"),
    ("hlo.constant(value=[1.5]) /* ty=Tensor[(1), int8] */", "1.5 does not fit s8"),
    ("hlo.constant(value=[1]) /* ty=Tensor[(?), float32] */", "static shape"),
    (f"hlo.transpose(%x) {T}", "needs the attribute dimensions"),
    (f"hlo.transpose(%x, dimensions=5) {T}", "no list of integers"),
    (f"hlo.transpose(dimensions=[0, 1]) {T}", "takes 1 operand, but has 0"),
    (f"hlo.slice(%x, slice=[1, 2]) {T}", "no list of"),
    (f'hlo.get_tuple_element((%x, %x), index="a") {T}', "no integer"),
    (f"hlo.get_tuple_element((%x, %x), index=-7) {T}", "not negative"),
    (f"hlo.concatenate(dimensions=[0]) {T}", "1 operand or more"),
    (f'hlo.compare(%x, %x, direction="XX") {T}', "direction=XX"),
    (f"hlo.while(%x) {T}", "needs 2 functions"),
    ("hlo.add(%x, %x)", "its type must follow it"),
    (f"hlo.call(%x, bodies=[@main]) {T}", "calls its own function again"),
    (f'hlo.all_reduce(%x, replica_groups="[0", bodies=[@main]) {T}', "replica_groups"),
    (f"hlo.reduce_window(%x, 0f, window=5, bodies=[@main]) {T}", "a window has the lists"),
    (f"hlo.reduce_window(%x, 0f, window={{size: [1]}}, bodies=[@main]) {T}", "a window has the lists"),
])
def test_primitives_that_do_not_fit_are_refused(body: str, message: str) -> None:
    reading = read(body)
    assert not reading.ok
    assert message in reading.findings[0].message


def test_values_in_the_spelling_of_hlo_are_read() -> None:
    adding = "def @add(%a: float32, %b: float32) { hlo.add(%a, %b) /* ty=float32 */ }\n"
    body = f'%0 = hlo.tanh(%x, result_accuracy="{{mode=highest}}") {T}; hlo.all_reduce(%0, replica_groups="{{{{0,1}}}}", bodies=[@add]) {T}'
    reading = read(body, adding)
    assert reading.ok
    reduce = reading.module().main().result()
    assert reduce.attrs["replica_groups"].groups() == ((0, 1),)
    assert str(reduce.operands[0].attrs["result_accuracy"]) == "{mode=highest}"


def test_folding_many_values_of_a_module_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("MOST_OPERATIONS", "MOST_OF_MODULE"):
        monkeypatch.setattr(fold_constants, limit, 1 << 24)
    numbers = ", ".join(map(str, range(512)))
    window = "window={{size=4064 pad=2032_{high}}}, to_apply=add"
    lines = [f" c{i + 1} = f32[4096] reduce-window(c{i}, z), {window.format(high=2031 if i else 5615)}\n" for i in range(30)]
    text = "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\nENTRY e {\n x = f32[4096] parameter(0)\n" \
           f" z = f32[] constant(0)\n c0 = f32[512] constant({{{numbers}}})\n{''.join(lines)} ROOT r = f32[4096] add(x, c30) }}\n"
    module = irscope.load(text, format="hlo").module()
    with within(2):
        pass_named("fold-constants").run(module)


def test_calls_that_double_at_each_of_sixteen_levels_are_refused() -> None:
    levels = [f"g{i} {{ x = f32[8] parameter(0)\n a = f32[8] call(x), to_apply=g{i - 1}\n ROOT b = f32[8] call(a), to_apply=g{i - 1} }}"
              for i in range(1, 17)]
    text = "\n".join(["HloModule m", "g0 { x = f32[8] parameter(0)\n ROOT r = f32[8] tanh(x) }", *levels,
                      "ENTRY e { x = f32[8] parameter(0)\n ROOT r = f32[8] call(x), to_apply=g16 }"])
    with pytest.raises(irscope.UserError, match="makes more than 200,000 nodes"):
        inline(irscope.load(text, format="hlo").module())


def test_a_rewritten_recursive_function_calls_itself() -> None:
    text = ("def @f(%n: int32) -> int32 { if (less(%n, 1)) { 0 } else { @f(subtract(%n, 1)) } }\n"
            "def @main(%n: int32) -> int32 { @f(%n) }\n")
    made = rewrite_module(irscope.load(text, format="relay").module(), lambda builder, node, operands: None, keep_dead=True)
    graphs = set(made.graphs.values())
    called = {body for graph in graphs for node in graph.nodes for body in node.bodies if body.name == "f"}
    assert called == {made.graphs["f"]}


def test_two_dynamic_channel_axes_have_no_known_size() -> None:
    type = TensorType(F32, (DynamicDim("n"), 8, DynamicDim("m")))
    assert _size(type, (1,)) == 8
    assert _size(type, (0, 2)) == _size(type, (0, 1, 2)) == -1


def test_frozen_objects_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python visits all of them to count them."""
    counted: list[int] = []

    def count() -> int:
        counted.append(1_000_000)
        return counted[-1]

    monkeypatch.setattr(collector, "_count", type(collector._count)())
    monkeypatch.setattr(gc, "get_freeze_count", count)
    for _ in range(10):
        with collector_paused():
            pass
    assert len(counted) == 1


def hlo(lines: list[str], before: str = "") -> Module:
    text = "\n".join(["HloModule m", before, "ENTRY e {", *lines, "}"])
    return irscope.load(text, format="hlo").module()


def test_known_branches_that_double_at_each_level_are_refused() -> None:
    branch = "conditional(t, {0}, {0}), true_computation=g{1}, false_computation=g0"
    levels = [f"g{i} {{ x = f32[8] parameter(0)\n t = pred[] constant(true)\n a = f32[8] {branch.format('x', i - 1)}\n"
              f" ROOT b = f32[8] {branch.format('a', i - 1)} }}" for i in range(1, 41)]
    module = hlo([" x = f32[8] parameter(0)\n t = pred[] constant(true)", f" ROOT r = f32[8] {branch.format('x', 40)}"],
                 "\n".join(["g0 { x = f32[8] parameter(0)\n ROOT r = f32[8] tanh(x) }", *levels]))
    with pytest.raises(irscope.UserError, match="taking the known branches of g1. makes more than 200,000 nodes"):
        pass_named("fold-constants").run(module)


def test_a_scale_after_thousands_of_sums_stays() -> None:
    def scaled(sums: int) -> str:
        head = [" p = f32[8,8] parameter(0)\n w = f32[8,8] iota(), iota_dimension=0\n c = f32[8] constant({1, 2, 3, 4, 5, 6, 7, 8})",
                " b0 = f32[8,8] broadcast(c), dimensions={0}\n b1 = f32[8,8] broadcast(c), dimensions={1}\n s = f32[] constant(3)",
                " f = f32[8,8] broadcast(s), dimensions={}\n x0 = f32[8,8] dot(p, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"]
        steps = [f" x{i + 1} = f32[8,8] add(x{i}, b{i % 2})" for i in range(sums)]
        made = pass_named("fold-scale").run(hlo([*head, *steps, f" ROOT r = f32[8,8] multiply(x{sums}, f)"]))
        return made.main().result().op.name

    assert scaled(3) == "add"
    assert scaled(2000) == "multiply"


def test_patterns_with_complex_constants() -> None:
    module = hlo([" p = c64[4,4] parameter(0)\n z = c64[] constant((0, 1))\n b = c64[4,4] broadcast(z), dimensions={}",
                  " d = c64[4,4] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n ROOT r = c64[4,4] add(d, b)"])
    assert pass_named("fuse-patterns").run(module).main().result().op.name == "call"


def test_an_attribute_with_the_name_of_a_parameter_of_irscope() -> None:
    layers = "; ".join(f"%{i} = tanh(nn.dense(%x, %{name}, units=None), op=3, type=4)" for i, name in enumerate("abc"))
    weights = ", ".join(f"%{name}: Tensor[(3, 4), float32]" for name in "abc")
    module = irscope.load(f"def @main(%x: Tensor[(2, 4), float32], {weights}) {{ {layers}; (%0, %1, %2) }}\n", format="relay").module()
    assert sum(node.op.name == "tanh" for node in pass_named("combine-parallel").run(pass_named("infer-types").run(module)).main().nodes) == 1


def test_a_long_chain_of_removed_predecessors_is_followed_once() -> None:
    def calls(steps: int) -> int:
        lines = [f" d{i + 1} = f32[8] abs(x), control-predecessors={{d{i}}}\n n{i + 1} = f32[8] negate(n{i}), control-predecessors={{d{i + 1}}}"
                 for i in range(steps)]
        module = hlo([" x = f32[8] parameter(0)\n d0 = f32[8] abs(x)\n n0 = f32[8] tanh(x)", *lines, f" ROOT r = f32[8] tanh(n{steps})"])
        return calls_in(pass_named("remove-dead").run, module)

    assert calls(400) < 2.5 * calls(200)


@pytest.mark.parametrize("kind, begin, step, limit, trips", [
    ("s8", 0, 1, 100, 100), ("s8", 0, 50, 120, None),  # the counter wraps around at 150
    ("bf16", 0, 1, 200, 200), ("bf16", 0, 1, 1000, None),  # the counter stays at 256
])
def test_a_counter_that_never_reaches_its_limit_has_no_trip_count(kind: str, begin: int, step: int, limit: int, trips: int | None) -> None:
    parts = f"c {{ i = {kind}[] parameter(0)\n w = f32[] convert(i)\n n = f32[] constant({limit})\n ROOT r = pred[] compare(w, n), direction=LT }}\n" \
            f"b {{ i = {kind}[] parameter(0)\n o = {kind}[] constant({step})\n ROOT r = {kind}[] add(i, o) }}"
    module = hlo([f" z = {kind}[] constant({begin})\n ROOT r = {kind}[] while(z), condition=c, body=b"], parts)
    assert trip_count(module, module.main().result()) == trips


def test_merged_slices_of_one_element_have_a_stride_of_one() -> None:
    huge = 9223372036854775807
    module = hlo([" p = f32[24] parameter(0)\n a = f32[8] slice(p), slice={[0:24:3]}", f" ROOT r = f32[1] slice(a), slice={{[2:3:{huge}]}}"])
    assert pass_named("simplify-algebra").run(module).main().result().attrs["slice"] == ((6, 7, 1),)


def test_a_slice_whose_stride_is_one_number() -> None:
    module = irscope.load("def @main(%x: Tensor[(6), float32]) { strided_slice(%x, begin=[0], end=[5], strides=2) }\n", format="relay").module()
    assert pass_named("simplify-algebra").run(pass_named("infer-types").run(module))


def test_operations_of_nested_calls_are_counted_once() -> None:
    def calls(depth: int) -> int:
        levels = [f"g{i} {{ x = f32[8] parameter(0)\n ROOT r = f32[8] call(x), to_apply=g{i - 1} }}" for i in range(1, depth)]
        module = hlo([" z = f32[] constant(1)\n x = f32[8] broadcast(z), dimensions={}",
                      *[f" a{i} = f32[8] call({f'a{i - 1}' if i else 'x'}), to_apply=g{depth - 1}" for i in range(depth)],
                      f" ROOT r = f32[8] negate(a{depth - 1})"],
                     "\n".join(["g0 { x = f32[8] parameter(0)\n ROOT r = f32[8] tanh(x) }", *levels]))
        return calls_in(computed_early, module, module.main())

    assert calls(200) < 2.5 * calls(100)
