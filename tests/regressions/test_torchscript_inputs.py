"""TorchScript texts that torch never prints are refused with a message, and cost no more time than others."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irscope
from irscope import UserError
from irscope.expand.torchscript import interpreter
from irscope.expand.torchscript.interpreter import run_program
from irscope.expand.torchscript.program import Given
from irscope.expand.torchscript.shapes import with_shapes
from irscope.formats.torchscript.values import Opaque, parse_value
from irscope.graph import Module, Node, Reading
from irscope.ops.attributes import Constant
from tests.effort import calls_in

SELF = '%w : Tensor = prim::GetAttr[name="w"](%self)'
NUMBER = ("%s : Tensor = aten::sum(%x)", "%a : int = aten::Int(%s)", "%c : bool = aten::Bool(%s)")


def graph(*lines: str, params: str = "%x : Float(4)", result: str = "%r") -> str:
    return f"graph({params}):\n" + "".join(f"  {line}\n" for line in lines) + f"  return ({result})\n"


def read(text: str) -> Reading:
    return irscope.load(text, format="torchscript")


def run(text: str) -> Module:
    return run_program(read(text).module(), Given())


def constant(name: str, type: str, value: str) -> str:
    return f"%{name} : {type} = prim::Constant[value={value}]()"


def convolution(stride: str, padding: str, type: str, size: int) -> tuple[str, ...]:
    return ("%n : NoneType = prim::Constant()", constant("i", "int", "1"), constant("s", "int", stride), constant("p", type, padding),
            "%st : int[] = prim::ListConstruct(%s)", "%d : int[] = prim::ListConstruct(%i)",
            "%pp : int[] = prim::ListConstruct(%p)" if type == "int" else constant("pp", type, padding),
            f"%r : Float(1, 5, {size}) = aten::conv1d(%x3, %w, %n, %st, %pp, %d, %i)")


NORM = ("%n : NoneType = prim::Constant()", constant("e", "float", "1.0e-5"), constant("t", "bool", "1"), constant("one", "int", "1"))


@pytest.mark.parametrize("lines", [
    ("%n : NoneType = prim::Constant()", "%l : Tensor?[] = prim::ListConstruct(%n)", "%r : Float(2, 3) = aten::index(%w, %l)"),
    (constant("b", "bool", "0"), "%l : int[] = prim::ListConstruct(%i2)", "%r : Float(2, 3) = aten::expand(%w, %l, %b)"),
    ("%r : Float(2, 3) = aten::transpose(%w, %i5, %i2)",),
    (*NUMBER, "%r : Float(2, 3) = aten::transpose(%w, %a, %i2)"),
    ("%r : Float(4) = aten::outer(%x, %w)",),
    (*NORM, "%r : Float(4) = aten::group_norm(%x, %one, %w, %n, %e, %t)"),
    (*NORM, *NUMBER, "%l : int[] = prim::ListConstruct(%a)", "%r : Float(4) = aten::layer_norm(%x, %l, %w, %n, %e, %t)"),
    convolution("1", '"foo"', "str", 8),
    (*NORM, "%l : Tensor[] = prim::ListConstruct(%w, %w, %w, %w)",
     "%r : Tensor, %q : Tensor = aten::gru(%h, %h, %l, %t, %one, %e, %t, %t, %t)"),
], ids=["index", "expand", "transpose", "transpose-by-data", "outer", "group-norm", "layer-norm", "padding", "gru"])
def test_a_weight_has_no_shape_where_its_user_does_not_determine_it(lines: tuple[str, ...]) -> None:
    params = "%self : __torch__.M, %x : Float(4), %x3 : Float(1, 3, 8), %h : Float()"
    with pytest.raises(UserError, match="shape of weight 'w'"):
        run(graph(SELF, constant("i2", "int", "2"), constant("i5", "int", "5"), *lines, params=params))


def test_a_stride_is_not_counted_through() -> None:
    lines = convolution("10000000000", "0", "int", 1)
    assert run(graph(SELF, *lines, params="%self : __torch__.M, %x3 : Float(1, 3, 8)"))


BIG = "1" + "0" * 30


@pytest.mark.parametrize("lines, message", [
    (("%r : Tensor = aten::relu[keywords=5](%x)",), "keywords is a list of different names"),
    (('%r : Tensor = aten::relu[keywords=("a", "b")](%x)',), "passes 2 operands by keyword"),
    (("%r : Float(4) = fx::get_attr[name={}](%x)",), "name and callee are texts"),
    ((constant("k", "int", BIG), "%r : Tensor = prim::NumToTensor(%k)"), "64 bits"),
    ((constant("k", "int[]", f"[1, {BIG}]"), "%r : Tensor = aten::sum(%x, %k)"), "64 bits"),
    ((constant("r", "Dict(int, int)", "{([1],): 3}"),), "no key of a dict"),
    ((constant("r", "Float()", "{(1,2)}"),), "complex numbers"),
    ((constant("k", "str", '"abc"'), "%t : Long() = prim::Constant[value={2}]()", "%r : Tensor = aten::mul(%t, %k)"), "no overload"),
    ((*NUMBER, constant("n", "int", "3"), "%r : Tensor = prim::Loop(%n, %c, %x)", "  block0(%i : int, %y : Tensor):", "    -> ()"),
     "does not return a condition"),
])
def test_attributes_and_values_of_other_kinds_are_refused(lines: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        run(graph(*lines))


def test_an_attribute_called_target_means_nothing_to_torchscript() -> None:
    assert run(graph("%r : Tensor = aten::relu[target=5](%x)"))


def test_a_number_is_converted_to_the_type_of_a_known_tensor() -> None:
    assert run(graph(constant("k", "int", "3"), "%t : Long() = prim::Constant[value={2}]()", "%r : Tensor = aten::to(%k, %t)"))


def test_a_group_named_as_a_loop_has_no_trips() -> None:
    text = graph(constant("n", "int", "3"), constant("c", "bool", "1"), "%r : Float(4) = prim::Loop_0(%n, %c, %x)") + \
        "with prim::Loop_0 = graph(%i : int, %a : Float(4)):\n  return (%a)\n"
    with pytest.raises(UserError, match="takes the number of the trip"):
        run(text)


@pytest.mark.parametrize("text", [
    graph(f"%r : Float(4) = prim::X_{'9' * 5000}(%x)"), graph(constant("r", "float", "ınf")),
    graph(constant("r", "Dict(int, int)", "{{}: 3}")), graph(constant("r", "Dict(int, int)", "{({},): 3}"))],
    ids=["group", "inf", "key", "key-of-parts"])
def test_odd_texts_are_read(text: str) -> None:
    assert len(read(text).module().main().nodes) == 2


def test_integers_of_a_constant_are_exact() -> None:
    for shown, type, wanted in (("{9223372036854775807}", "Long()", 9223372036854775807), ("{9007199254740993}", "Long()", 9007199254740993),
                                (" 9007199254740993 [ CPULongType{1} ]", "Long(1)", [9007199254740993]),
                                ("{9007199254740993}", "Tensor", 9007199254740993)):
        module = run(graph(f"%r : {type} = prim::Constant[value={shown}]()"))
        assert np.array_equal(Constant.of(module.main().result()).literal.value(), wanted)


@pytest.mark.parametrize("dtype", ["s4", "f4e2m1fn"])
def test_element_types_that_torch_lacks_are_refused(dtype: str) -> None:
    module = read(graph("%r : Tensor = aten::relu(%x)", params="%x : Tensor")).module()
    with pytest.raises(UserError, match="torch has no element type"):
        with_shapes(module, {"x": (2,)}, {"x": dtype})


# ---------------------------------------------------------------------- time


def doubled(name: str, times: int, kind: str = "List") -> list[str]:
    return [f"%{name}{i + 1} : Any = prim::{kind}Construct(%{name}{i}, %{name}{i})" for i in range(times)]


def methods(count: int) -> str:
    call = '  %{0} : int = prim::CallMethod[name="m{1}"](%self, %{2})\n'
    parts = [f"# method m{i}\ngraph(%self : __torch__.M, %x : int):\n{call.format('a', i + 1, 'x')}{call.format('b', i + 1, 'a')}  return (%b)\n"
             for i in range(count)]
    return "".join(parts) + f"# method m{count}\ngraph(%self : __torch__.M, %x : int):\n  return (%x)\n"


def raising(depth: int, indent: str = "  ", at: int = 0) -> str:
    if at == depth:
        return f"{indent}-> (%x)\n"
    return (f"{indent}%v{at} : Tensor = prim::If(%c)\n{indent}  block0():\n{raising(depth, indent + '    ', at + 1)}"
            f"{indent}  block1():\n{indent}     = prim::RaiseException(%m)\n{indent}    -> (%x)\n{indent}-> (%v{at})\n")


def loops(depth: int, indent: str = "  ", at: int = 0) -> str:
    if at == depth:
        return ""
    return (f"{indent} = prim::Loop(%n, %c)\n{indent}  block0(%i{at} : int):\n{loops(depth, indent + '    ', at + 1)}"
            f"{indent}    %q{at} : Tensor = aten::add_(%x, %n, %n)\n{indent}    -> (%c)\n")


DATA = "graph(%x : Float(4)):\n" + "".join(f"  {line}\n" for line in (*NUMBER, constant("m", "str", '"no"'), constant("n", "int", "5")))
LOOP = (constant("n", "int", "9223372036854775807"), constant("t", "bool", "1"), "%r : int = prim::Loop(%n, %t, %t)",
        "  block0(%i : int, %y : int):", "    -> (%t, %y)")


@pytest.mark.parametrize("text", [
    graph(*LOOP), methods(40).replace("%self : __torch__.M, %x : int", "%self : __torch__.M, %x : Float(4)", 1),
    DATA + raising(20).rpartition("->")[0] + "return (%v0)\n", DATA + loops(14) + "  return (%x)\n",
    graph(constant("z", "int", "0"), constant("i", "int", "1"), "%b : Tensor = torch._functorch.predispatch._add_batch_dim(%x, %z, %i)",
          "%r : Tensor = aten::sum(%b)", params="%x : Float(1000000, 2)"),
], ids=["loop", "calls", "raises", "nested-loops", "rows"])
def test_a_program_takes_a_bounded_number_of_steps(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "MOST_STEPS", 3000)
    with pytest.raises(UserError, match="more than 3,000 steps"):
        run(text)


def test_an_operator_in_a_loop_counts_as_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """250,000 of them took 37 s."""
    monkeypatch.setattr(interpreter, "MOST_STEPS", 3000)
    counted = []
    apply = interpreter.TorchInterpreter.operator

    def operator(self: interpreter.TorchInterpreter, node: Node, name: str, values: list[Any]) -> Any:
        counted.append(name)
        return apply(self, node, name, values)
    monkeypatch.setattr(interpreter.TorchInterpreter, "operator", operator)
    lines = (constant("n", "float", "1e30"), constant("t", "bool", "1"), "%c : NoneType = prim::Constant()", constant("z", "int", "0"),
             "%r : Tensor = prim::Loop(%n, %t, %x)", "  block0(%i : int, %y : Tensor):", "    %w : Tensor = aten::clamp(%y, %z, %c)",
             "    -> (%t, %w)")
    with pytest.raises(UserError, match="more than 3,000 steps"):
        run(graph(*lines, params="%x : Float(4)"))
    assert 100 < len(counted) < 300


@pytest.mark.parametrize("lines, message", [
    ((*doubled("l", 40), "%r : str = aten::str(%l40)"), "131,072 parts"),
    ((*doubled("l", 40), "%r : Tensor = aten::relu(%l40)"), "131,072 parts"),
    ((*doubled("l", 40), *doubled("m", 40), "%r : bool = aten::eq(%l40, %m40)"), "131,072 parts"),
    ((*doubled("s", 14), "%r : str = aten::str(%s14)"), "2,000,000 elements"),
    ((constant("f", "str", '"%s%s"'), *(f"%s{i + 1} : str = aten::percentFormat(%f, %s{i}, %s{i})" for i in range(40)),
      "%r : int = aten::len(%s40)"), "2,000,000 elements"),
    (("%t : (int) = prim::TupleConstruct(%l0)", "%r : (int) = aten::mul(%t, %k)"), "2,000,000 elements"),
], ids=["str", "message", "eq", "texts", "format", "tuple"])
def test_values_that_double_with_each_line_are_refused(lines: tuple[str, ...], message: str) -> None:
    given = (constant("l0", "int", "1"), constant("m0", "int", "1"), constant("s0", "str", f'"{"a" * 3000}"'), constant("k", "int", "1000000000"))
    with pytest.raises(UserError, match=message):
        run(graph(*given, *lines))


def test_a_tuple_that_a_branch_reads_is_visited_once() -> None:
    lines = ("%q : int = prim::If(%c)", "  block0():", "    %n : int = aten::len(%t40)", "    -> (%n)", "  block1():", "    -> (%a)",
             "%r : int = aten::Int(%q)")
    assert run(graph(*NUMBER, constant("t0", "int", "1"), *doubled("t", 40, "Tuple"), *lines))


def test_a_branch_has_few_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "MOST_STEPS", 10_000)
    names = ", ".join(f"%r{i} : Tensor" for i in range(400))
    lines = (f"{names} = prim::If(%c)", "  block0():", "    %y : Tensor = aten::relu(%x)", f"    -> ({', '.join(['%y'] * 400)})", "  block1():",
             f"    -> ({', '.join(['%x'] * 400)})")
    with pytest.raises(UserError, match="10,000 steps"):
        run(graph(*NUMBER, *lines, result="%r0"))


def test_a_write_through_a_chain_of_views_reads_each_view_once() -> None:
    def text(n: int) -> str:
        views = [f"%x{i + 1} : Float(4, 4) = aten::t(%x{i})" for i in range(n)]
        return graph(*views, *[f"%y{i} : Float(4, 4) = aten::relu_(%x{n})" for i in range(20)], params="%x0 : Float(4, 4)", result="%x0")
    small, large = (calls_in(run, text(n)) for n in (30, 300))
    assert large < 15 * small


@pytest.mark.parametrize("value", ["1" * 95_000 + "x", "+1." + "1" * 95_000 + "x", "[" + "a" * 95_000 + "]", '"' + '\\"' * 45_000 + '"'])
def test_long_values_are_read_once(value: str) -> None:
    assert read(graph(constant("r", "Any", value), result="%x"))


def test_a_long_prefix_is_compared_only_with_lines_that_long() -> None:
    read("1" * 45_000 + " graph(%x : int):\n" + "a\n" * 25_000)


def test_only_the_first_undefined_values_have_suggestions() -> None:
    reading = read(graph(*[f"%a{i} = aten::f(%undef{i})" for i in range(1000)], result="%x"))
    assert len(reading.findings) == 1000 and sum(bool(finding.help) for finding in reading.findings) <= 20


def test_a_statement_has_few_blocks() -> None:
    reading = read("graph(%x : int):\n  " + ", ".join(f"%a{i}" for i in range(4000)) + " = prim::If(%x)\n" + "block0():->()\n" * 4500)
    assert "more than 200 blocks" in reading.findings[0].message


def test_a_key_that_changes_keeps_its_text() -> None:
    assert isinstance(parse_value("{{}: 3}"), Opaque)


NONE = "%n : NoneType = prim::Constant()"
MANY = "100000000"


@pytest.mark.parametrize("input, lines", [
    ("Float(1000000000)", (constant("k", "int", "500000000"), constant("b", "bool", "0"), "%r : Tensor = aten::combinations(%x, %k, %b)")),
    ("Float(4)", (constant("k", "int", MANY), constant("b", "bool", "0"), "%r : Tensor = aten::vander(%x, %k, %b)")),
    ("Float(1, 1, 4)", (constant("k", "int", MANY), "%l : int[] = prim::ListConstruct(%k)",
                        NONE, "%r : Tensor = aten::upsample_nearest1d(%x, %l, %n)")),
    ("Float(1, 1, 4)", (constant("k", "int", MANY), "%l : int[] = prim::ListConstruct(%k, %k)",
                        "%r : Tensor = aten::replication_pad1d(%x, %l)")),
    ("Float(1)", (constant("a", "float", "0."), constant("k", "int", MANY), NONE,
                  "%r : Tensor = aten::linspace(%a, %a, %k, %n, %n, %n, %n)")),
    ("Float(1, 1, 3000, 3000)", (constant("k", "int", "2900"), constant("o", "int", "1"), constant("z", "int", "0"),
                                 "%ks : int[] = prim::ListConstruct(%k, %k)", "%os : int[] = prim::ListConstruct(%o, %o)",
                                 "%zs : int[] = prim::ListConstruct(%z, %z)", "%r : Tensor = aten::im2col(%x, %ks, %os, %zs, %os)")),
    ("Float(1, 1, 4, 4)", (constant("k", "int", "10000000"), constant("o", "int", "1"), constant("b", "bool", "0"), NONE,
                           "%l : int[] = prim::ListConstruct(%k, %o)",
                           "%r : Tensor = aten::_upsample_bicubic2d_aa(%x, %l, %b, %n, %n)")),
], ids=["combinations", "vander", "nearest", "pad", "linspace", "im2col", "bicubic"])
def test_lists_that_an_operator_computes_are_bounded(input: str, lines: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match="makes more than"):
        run(graph(*lines, params=f"%x : {input}"))


@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_linspace_is_exact_at_both_ends(n: int) -> None:
    lines = constant("a", "float", "0.1"), constant("b", "int", "2"), constant("k", "int", str(n)), constant("d", "int", "7"), NONE
    module = run(graph(*lines, "%r : Tensor = aten::linspace(%a, %b, %k, %d, %n, %n, %n)"))
    step = 1.9 / (n - 1) if n > 1 else 0.0
    wanted = [0.1 + step * i if i < n // 2 else 2 - step * (n - 1 - i) for i in range(n)] if n != 1 else [0.1]
    assert Constant.of(module.main().result()).literal.value().tolist() == wanted


@pytest.mark.parametrize("name", ["aten::Int", "aten::Float", "aten::FloatImplicit", "aten::Complex"])
def test_a_list_in_place_of_a_number_is_shown_in_the_message(name: str) -> None:
    lines = (constant("i", "int", "1"), "%l : int[] = prim::ListConstruct(%i, %i)", f"%n : int = {name}(%l)",
             "%r : Tensor = aten::add(%x, %n, %i)")
    with pytest.raises(UserError) as fault:
        run(graph(*lines))
    assert name in str(fault.value)
    assert "object at" not in str(fault.value)


@pytest.mark.parametrize(("call", "type", "dtype"), [("aten::pow(%a, %b)", "float", "f32"), ("aten::pow(%a, %b)", "int", "s64"),
                                                     ("prim::max(%b, %f)", "float", "f32")])
def test_a_number_has_the_type_that_its_operator_declares(call: str, type: str, dtype: str) -> None:
    lines = (constant("i", "int", "1"), constant("a", "int", "2"), constant("b", "int", "3"), constant("f", "float", "2."),
             f"%n : {type} = {call}", "%r : Tensor = aten::add(%x, %n, %i)")
    root = run(graph(*lines, params="%x : Long(4)")).main().root
    assert root is not None
    assert str(root.type) == f"{dtype}[4]"


def test_lists_that_several_concatenations_read_take_linear_time(tmp_path: Path) -> None:
    def lint(count: int) -> None:
        params = ", ".join(f"%x{i} : Float(1)" for i in range(count))
        lines = [constant("d", "int", "0"), "%l : Tensor[] = prim::ListConstruct(" + ", ".join(f"%x{i}" for i in range(count)) + ")",
                 *(f"%c{i} : Tensor = aten::cat(%l, %d)" for i in range(6)), "%r : Tensor[] = prim::ListConstruct(%c0, %c1, %c2, %c3, %c4, %c5)"]
        path = tmp_path / f"{count}.txt"
        path.write_text(graph(*lines, params=params))
        irscope.lint(path)
    lint(5)
    small, large = (calls_in(lint, count) for count in (30, 120))
    assert large < 5 * small
