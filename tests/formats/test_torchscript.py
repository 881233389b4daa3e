"""TorchScript text: every form of a graph becomes the common one, prints again, and bad text is told with its place."""
from __future__ import annotations

import html
import subprocess
import sys

import pytest

from irscope.formats.torchscript import print_module, read, sniff
from irscope.formats.torchscript.types import TorchTensorType, parse_type
from irscope.formats.torchscript.values import List, Opaque, TensorText, parse_value, unescape
from irscope.graph import Graph, Reading, TensorType
from irscope.source import SourceText

MLP = """graph(%self : __torch__.Mlp,
      %x : Float(32, 128, strides=[128, 1], requires_grad=0, device=cpu)):
  %fc : __torch__.torch.nn.modules.linear.Linear = prim::GetAttr[name="fc"](%self)
  %w : Tensor = prim::GetAttr[name="weight"](%fc)
  %b : Tensor = prim::GetAttr[name="bias"](%fc)
  %y : Float(32, 64, strides=[64, 1], requires_grad=1, device=cpu) = aten::linear(%x, %w, %b), scope: __module.fc # /m/linear.py:134:0
  return (%y)
"""

RISKY = """graph(%x.1 : Tensor):
  %4 : NoneType = prim::Constant()
  %6 : int = prim::Constant[value=0]() # risky.py:3:18
  %9 : int = prim::Constant[value=2]()
  %14 : int = prim::Constant[value=1]()
  %5 : Tensor = aten::sum(%x.1, %4) # risky.py:3:7
  %7 : Tensor = aten::gt(%5, %6) # risky.py:3:7
  %8 : bool = aten::Bool(%7)
  %21 : Tensor = prim::If(%8) # risky.py:3:4
    block0():
      %11 : Tensor = aten::mul(%x.1, %9)
      -> (%11)
    block1():
      %16 : Tensor = aten::sub(%x.1, %14, %14)
      -> (%16)
  return (%21)
"""

GROUPS = """graph(%x : Float(4)):
  %a : Float(4), %ok : bool = prim::TypeCheck[types=[Float(4)]](%x)
  %y : Tensor = prim::DifferentiableGraph_0(%a)
  %z : Tensor = prim::TensorExprGroup_1(%y)
  return (%y, %z)
with prim::DifferentiableGraph_0 = graph(%0 : Float(4)):
  %1 : Float(4) = prim::TensorExprGroup_0(%0)
  return (%1)
with prim::TensorExprGroup_0 = graph(%0 : Float(4)):
  %1 : Float(4) = aten::relu(%0)
  return (%1)
with prim::TensorExprGroup_1 = graph(%0 : Float(4)):
  %1 : Float(4) = aten::neg(%0)
  return (%1)
"""


def parsed(text: str) -> Reading:
    reading = read(SourceText("t.txt", text))
    assert reading.ok, [f.render() for f in reading.findings]
    return reading


def statements(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes if not node.synthetic]


def test_a_statement_is_a_node_with_type_scope_and_source_line() -> None:
    module = parsed(MLP).module()
    main = module.main()
    assert statements(main) == ["prim::GetAttr"] * 3 + ["aten::linear"]
    linear = main.result()
    assert [o.name for o in linear.operands] == ["x", "w", "b"]
    assert isinstance(linear.type, TensorType)
    assert linear.type.dims() == (32, 64)
    assert module.scope(linear) == "fc"
    assert str(module.call_stack(linear)[0]) == "/m/linear.py:134"
    assert main.nodes[2].attrs == {"name": "fc"}


def test_what_a_block_takes_from_outside_is_a_parameter_of_its_body() -> None:
    branch = parsed(RISKY).module().main().result()
    assert branch.op.name == "prim::If"
    assert [o.name for o in branch.operands] == ["8", "x.1", "9", "x.1", "14"]
    assert [[p.name for p in body.params] for body in branch.bodies] == [["x.1", "9"], ["x.1", "14"]]
    assert [body.result().op.name for body in branch.bodies] == ["aten::mul", "aten::sub"]


def test_several_results_and_subgraphs_with_numbers_of_their_own() -> None:
    module = parsed(GROUPS).module()
    main = module.main()
    assert statements(main) == ["prim::TypeCheck", "prim::DifferentiableGraph", "prim::TensorExprGroup"]
    outer = next(n for n in main.nodes if n.op.name == "prim::DifferentiableGraph")
    inner = outer.bodies[0].result()
    assert inner.bodies[0].result().op.name == "aten::relu"
    assert main.result().operands[1].bodies[0].result().op.name == "aten::neg"
    assert main.result().synthetic


@pytest.mark.parametrize("text", [MLP, RISKY, GROUPS])
def test_what_is_printed_reads_as_the_same_graph(text: str) -> None:
    printed = print_module(parsed(text).module())
    assert print_module(parsed(printed).module()) == printed
    assert [line.strip() for line in printed.splitlines()] == [line.strip() for line in text.splitlines()]


@pytest.mark.parametrize("paste", [
    lambda t: t.replace("\n", "\r\n"),
    lambda t: "\ufeff" + t,
    lambda t: "\n".join("[DUMP graph_fuser.cpp:2506] " + line for line in t.splitlines()),
    lambda t: "\n".join(f"2022-03-31T18:09:00.42000{i:02d}Z {line}" for i, line in enumerate(t.splitlines())),
    lambda t: "\n".join("> " + line for line in t.splitlines()),
    lambda t: "<pre>" + html.escape(t) + "</pre>",
    lambda t: "```\n" + t + "```\n",
    lambda t: "Traced Model : " + t + "Output: done\n",
    lambda t: repr(t),
    lambda t: "\x1b[32m" + t + "\x1b[0m",
    lambda t: "\n".join("    " + line for line in t.splitlines()),
    lambda t: t.replace("\n  ", "\n\xa0 "),
])
@pytest.mark.parametrize("text", [MLP, RISKY])
def test_text_as_people_paste_it(text: str, paste: object) -> None:
    assert callable(paste)
    pasted = paste(text)
    assert sniff(pasted) > 0.9
    module = parsed(pasted).module()
    assert print_module(module) == print_module(parsed(text).module())


def test_two_graphs_are_two_modules_and_methods_are_one() -> None:
    assert [len(m.graphs) for m in parsed(MLP + MLP).modules] == [1, 1]
    methods = parsed("# method <top>.forward\n" + MLP + "# method fc.forward\n" + MLP)
    assert [list(m.graphs) for m in methods.modules] == [["<top>.forward", "fc.forward"]]


@pytest.mark.parametrize(("text", "name", "words"), [
    (MLP[:-14], "truncated-text", "the text ends inside the graph"),
    (MLP.replace("%b)", "%bb)"), "undefined-value", "%bb is not defined here"),
    (MLP.replace("= aten::linear", "aten::linear"), "syntax", "'=' is expected after %y"),
    ("graph():\n    %x : [num_users=1] = placeholder[target=x]\n    return x\n", "fx-graph", "torch.fx"),
    ("nothing here\n", "no-graph", "no TorchScript graph"),
])
def test_faults_are_told_with_their_place(text: str, name: str, words: str) -> None:
    reading = read(SourceText("t.txt", text))
    assert not reading.ok
    assert [f.name for f in reading.findings] == [name]
    assert words in reading.findings[0].message


def test_an_undefined_value_is_pointed_at_with_a_suggestion() -> None:
    reading = read(SourceText("t.txt", RISKY.replace("(%x.1, %9)", "(%x.l, %9)")))
    finding = reading.findings[0]
    assert str(finding.place()) == "11:32"
    assert finding.help == "did you mean x.1?"


def test_wrapped_text_is_told_apart() -> None:
    width = 60
    wrapped = "\n".join(line[i:i + width] for line in MLP.splitlines() for i in range(0, len(line), width))
    reading = read(SourceText("t.txt", wrapped))
    assert reading.ok or reading.findings[0].name in ("wrapped-text", "syntax")


@pytest.mark.parametrize(("text", "shape", "strides"), [
    ("Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)", "f32[2,3]", (3, 1)),
    ("Long()", "s64[]", None),
    ("Double(*, 3)", "f64[?,3]", None),
    ("Float(1:150528, 3:50176)", "f32[1,3]", (150528, 50176)),
])
def test_tensor_types(text: str, shape: str, strides: tuple[int, ...] | None) -> None:
    type = parse_type(text)
    assert isinstance(type, TorchTensorType)
    assert str(TensorType(type.dtype, type.shape)) == shape
    assert type.strides == strides
    assert str(type) == text


@pytest.mark.parametrize(("text", "value"), [
    ("1", 1), ("-1.", -1.0), ("1e-05", 1e-05), ("[[1], [2]]", List((List((1,)), List((2,))))), ('"a\\n\\"q\\""', 'a\n"q"'), ("[1, 2]", List((1, 2))), ("(1,)", (1,)),
    ("annotate(List[int], [])", List()), ('{"a": 1}', {"a": 1}), ("1.+2.j", 1 + 2j), ("[True, False]", List((True, False))),
    ("annotate(List[int], [])]", Opaque("annotate(List[int], [])]")), ("1.+-j", Opaque("1.+-j")), ("-1e-05-infj", complex(-1e-05, -float("inf"))),
])
def test_values(text: str, value: object) -> None:
    assert parse_value(text) == value


def test_tensor_constants_show_what_the_text_has() -> None:
    assert parse_value("{0.353553}").array() == 0.353553
    assert parse_value(" 1  2 [ CPULongType{2} ]").array().tolist() == [1, 2]
    assert parse_value("0.01 * -8.0425 -1.9043 [ CPUFloatType{2} ]").array().tolist() == pytest.approx([-0.080425, -0.019043])
    assert parse_value("(1,.,.) =   1   2  (2,.,.) =   3   4 [ CPUFloatType{2,1,2} ]").array().tolist() == [[[1, 2]], [[3, 4]]]
    elided = parse_value("<Tensor>")
    assert isinstance(elided, TensorText)
    with pytest.raises(ValueError, match="elides"):
        elided.array()


def test_bytes_above_127_print_as_signed_octal_digits() -> None:
    assert unescape(r"\0)+\/.)") in ("é", "\u00e9")


def test_what_a_statement_gives_is_not_there_inside_of_it() -> None:
    text = "graph(%x : Tensor):\n  %y : Tensor = prim::If(%x)\n    block0():\n      %z : Tensor = aten::neg(%y)\n      -> (%z)\n    block1():\n      -> (%x)\n  return (%y)\n"
    reading = read(SourceText("t.txt", text))
    assert [f.code for f in reading.findings] == ["TSC010"]
    assert all(o is not node for graph in reading.module().graphs.values() for node in graph.nodes for o in node.operands)


@pytest.mark.parametrize("odd", ["²", "9" * 30, "٣"])
def test_odd_sizes_are_dynamic(odd: str) -> None:
    type = parse_type(f"Float({odd}, 2, strides=[{odd}, 1])")
    assert isinstance(type, TorchTensorType)
    assert not type.is_static


def test_operands_stand_before_users_however_deep_a_block_reaches_out() -> None:
    text = """graph(%x : Tensor, %c : bool, %d : bool):
  %y : Tensor = prim::If(%c)
    block0():
      %a : Tensor = aten::neg(%x)
      %z : Tensor = prim::If(%d)
        block0():
          %b : Tensor = aten::add(%a, %x)
          -> (%b)
        block1():
          -> (%x)
      -> (%z)
    block1():
      -> (%x)
  return (%y)
"""
    module = parsed(text).module()
    for graph in module.graphs.values():
        assert [node.index for node in graph.nodes] == list(range(len(graph.nodes)))
        assert graph.nodes[:len(graph.params)] == graph.params
        for node in graph.nodes:
            assert all(operand.index < node.index for operand in node.operands)


def test_operators_are_the_same_objects_whatever_was_imported_before() -> None:
    """In a process of its own: here everything is imported already."""
    program = ("import irscope\n"
               "read = lambda: irscope.load('graph(%x : Tensor):\\n  %y : Tensor = aten::relu(%x)\\n  return (%y)\\n').module().main().nodes[-1].op\n"
               "first = read()\n"
               "from irscope.formats.torchscript import operators\n"
               "operators.load()\n"
               "assert first is read() and first.known, first\n")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
