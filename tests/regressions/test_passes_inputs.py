"""Relay texts with ``hlo.*`` primitives whose attributes, operands or functions are missing or of another kind."""
from __future__ import annotations

import pytest

import irscope
from irscope.graph import Reading
from irscope.passes import fold_constants, pass_named
from tests.effort import within

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
