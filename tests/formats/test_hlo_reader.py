"""Every form of HLO text is read; the line reader and the cursor give the same graph; what stands around does not disturb."""
from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import pytest

from irscope.formats.hlo import body, sniff
from irscope.formats.hlo.opcodes import OPCODES
from irscope.graph import DynamicDim, Kind, Module, Op, TensorType
from irscope.ops import registry
from irscope.ops.attrs import ConvDims, Window
from tests.formats.hlo_same import difference
from tests.formats.hlo_texts import FORMS, FRAMES, MODULE, reading

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.hlo"))
TEXTS = {"module": MODULE, "frames": FRAMES, **FORMS, **{p.name: p.read_text() for p in SAMPLES}}


def fine(text: str) -> Module:
    got = reading(text)
    assert got.ok, "\n".join(f.render() for f in got.findings)
    return got.module()


@pytest.mark.parametrize("name", TEXTS)
def test_reads(name: str) -> None:
    got = reading(TEXTS[name])
    assert got.ok and not got.findings, "\n".join(f.render() for f in got.findings)
    assert sniff(TEXTS[name]) > 0
    for graph in got.module().graphs.values():
        assert graph.root is not None
        for index, node in enumerate(graph.nodes):
            assert node.index == index
            assert all(operand.index < index and graph.nodes[operand.index] is operand for operand in node.operands)


@pytest.mark.parametrize("name", TEXTS)
def test_both_paths_give_the_same_graph(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = fine(TEXTS[name])
    with monkeypatch.context() as patch:
        patch.setattr(body, "read_lines", lambda assembly, at: at)
        careful = fine(TEXTS[name])
    assert difference(quick, careful) == ""
    assert [n.loc for g in quick.graphs.values() for n in g.nodes] == [n.loc for g in careful.graphs.values() for n in g.nodes]


def test_printed_lines_take_the_quick_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object) -> None:
        raise AssertionError("the cursor was called for a printed line")
    monkeypatch.setattr(body, "read_instruction", never)
    assert len(fine(MODULE).main().nodes) == 11


def test_what_a_module_holds() -> None:
    module = fine(MODULE)
    assert (module.name, module.format, module.entry, list(module.graphs)) == ("jit_f", "hlo", "main", ["add_f32", "main"])
    assert module.attrs["is_scheduled"] is True and module.attrs["replica_count"] == 2
    params, result = module.attrs["entry_computation_layout"]
    assert [str(t) for t in params] == ["f32[2,3]{1,0}", "s32[]"] and str(result) == "(f32[2]{0}, f32[2,3]{1,0})"
    main = module.main()
    nodes = {n.name: n for n in main.nodes}
    assert [p.name for p in main.params] == ["x", "n"] and main.result() is nodes["out"]
    assert nodes["x"].attrs == {"number": 0}
    assert nodes["reduced"].attrs == {"dimensions": (1,)} and nodes["reduced"].bodies == (module.graphs["add_f32"],)
    assert nodes["padded"].attrs == {"padding": ((1, 1, 0), (0, 0, 0))}
    assert nodes["cut"].attrs == {"slice": ((0, 4, 2), (0, 3, 1))}
    assert nodes["back"].attrs == {"dimensions": (1, 0), "control_predecessors": ("reduced", "n")}
    assert module.source.text[nodes["sum"].loc:].startswith("sum = ")
    assert dict(module.raw(nodes["padded"])) == {"backend_config": '{"outer":{"inner":["}"]}}'}
    assert dict(module.raw(nodes["x"])) == {"sharding": "{replicated}"}


def test_equal_spellings_share_objects() -> None:
    main = fine(MODULE).main()
    nodes = {n.name: n for n in main.nodes}
    assert nodes["t"].attrs is not nodes["back"].attrs
    assert nodes["sum"].type is nodes["x"].type and nodes["t"].op is nodes["back"].op
    text = MODULE.replace("%padded =", "%again = f32[3,2]{1,0} transpose(%x), dimensions={1,0}\n  %padded =")
    again = {n.name: n for n in fine(text).main().nodes}
    assert again["again"].attrs is again["t"].attrs


def test_windows_and_labels() -> None:
    nodes = {n.name: n for n in fine(FORMS["windows"]).main().nodes}
    assert nodes["conv"].attrs["window"] == Window.make((3, 3), (2, 2), ((1, 1), (1, 1)), None, None, (False, True))
    assert nodes["conv"].attrs["dim_labels"] == ConvDims.parse("b01f_01io->b01f")
    assert [g.name for g in nodes["s"].bodies] == ["ge", "add"]


def test_dynamic_dimensions() -> None:
    p = fine(FORMS["dynamic"]).main().params[0]
    assert isinstance(p.type, TensorType) and p.type.shape == (DynamicDim(bound=8), DynamicDim())


def test_nested_operands_become_instructions() -> None:
    main = fine(FORMS["nested_operands"]).main()
    assert [n.op.name for n in main.nodes] == ["parameter", "parameter", "multiply", "constant", "broadcast", "add"]
    assert [p.name for p in main.params] == ["parameter.anon", "parameter.anon.1"] and not any(n.synthetic for n in main.nodes)


def test_nested_computations_get_a_name() -> None:
    module = fine(FORMS["nested_computations"])
    assert list(module.graphs) == ["r.to_apply", "e"] and module.main().nodes[-1].bodies[0] is module.graphs["r.to_apply"]


def test_elements_of_tuples_are_made_once_and_not_shown() -> None:
    main = fine(FORMS["elements"]).main()
    made = [n for n in main.nodes if n.synthetic]
    assert [(n.name, n.op.name, n.attrs["index"]) for n in made] == [
        ("p#0", "get-tuple-element", 0), ("p#1", "get-tuple-element", 1), ("p#1#0", "get-tuple-element", 0), ("p#1#1", "get-tuple-element", 1)]
    assert len(list(main.shown())) == 4


def test_entry_and_root_by_default() -> None:
    module = fine(FORMS["no_entry_no_root"])
    assert module.entry == "last" and module.main().result().name == "c"


def test_types_that_are_left_out_are_inferred() -> None:
    main = fine(FORMS["left_out_types"]).main()
    assert [str(n.type) for n in main.nodes[1:]] == ["(f32[2,3], f32[2,3])", "f32[2,3]", "f32[2,3]", "pred[2,3]"]


LYING = """HloModule m
id { ROOT a = f32[4,3]{0,1:T(2,2)} parameter(0) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = pred[] compare(a, b), direction=LT }
ENTRY e {
  x = f32[4,3]{0,1:T(2,2)} parameter(0)
  y = f32[4,3]{1,0} parameter(1)
  p = pred[4,3]{0,1} parameter(2)
  q = f32[2,4,5]{0,2,1} parameter(3)
  c = c64[4,3]{0,1} parameter(4)
  z = f32[] constant(0)
  u = f32[2,4,5] parameter(5)
  ROOT r = """


@pytest.mark.parametrize(("right_side", "type"), [
    ("negate(x)", "f32[4,3]{0,1:T(2,2)}"), ("add(x, y)", "f32[4,3]{0,1:T(2,2)}"), ("add(y, x)", "f32[4,3]{1,0}"),
    ("compare(x, y), direction=LT", "pred[4,3]{0,1:T(2,2)}"), ("real(c)", "f32[4,3]{0,1}"), ("select(p, x, y)", "f32[4,3]{0,1}"),
    ("clamp(z, x, z)", "f32[4,3]{0,1:T(2,2)}"), ("transpose(x), dimensions={1,0}", "f32[3,4]{1,0:T(2,2)}"),
    ("transpose(q), dimensions={2,0,1}", "f32[5,2,4]{1,0,2}"), ("reverse(x), dimensions={0}", "f32[4,3]{0,1:T(2,2)}"),
    ("transpose(u), dimensions={2,0,1}", "f32[5,2,4]{0,2,1}"), ("transpose(u), dimensions={0,1,2}", "f32[2,4,5]"),
    ("tuple(x, y)", "(f32[4,3]{0,1:T(2,2)}, f32[4,3]{1,0})"), ("call(x), to_apply=id", "f32[4,3]{0,1:T(2,2)}"),
    ("sort(x), dimensions={0}, to_apply=less", "f32[4,3]{0,1:T(2,2)}"), ("pad(x, z), padding=0_0x0_0", "f32[4,3]"),
    ("concatenate(x, x), dimensions={0}", "f32[8,3]"),
])
def test_types_that_are_left_out_lie_as_xla_lays_them(right_side: str, type: str) -> None:
    assert str(fine(LYING + right_side + "\n}\n").main().result().type) == type


def test_a_layout_that_is_none_is_not_handed_on() -> None:
    got = reading("HloModule m\nENTRY e {\n  x = f32[4,3]{0,0} parameter(0)\n  n = negate(x)\n  ROOT t = tuple(x, n)\n}\n")
    assert got.ok and [f.code for f in got.findings] == ["HLO029"]
    assert str(got.module().main().result().type) == "(f32[4,3], f32[4,3])"


def test_async_sugar_is_a_computation() -> None:
    module = fine(FORMS["asynchronous"])
    nodes = {n.name: n for n in module.main().nodes}
    assert [nodes[n].op.name for n in ("s", "u", "d")] == ["async-start", "async-update", "async-done"]
    wrapped = nodes["s"].bodies[0]
    assert wrapped.notes["implicit"] and wrapped.result().op.name == "slice" and wrapped.result().attrs == {"slice": ((1, 3, 1),)}
    assert str(wrapped.result().type) == "f32[2]" and nodes["cs"].op.name == "copy-start"
    assert nodes["start"].attrs == {"async_execution_thread": "host"} and module.graphs["wrapped"].notes["execution_thread"] == "host"


def test_single_instructions() -> None:
    for text in ("foo = f32[10] add(f32[10] x, f32[10] y), metadata={op_name=\"a\"}", "f32[10] add(f32[10], f32[10])",
                 "ROOT foo = add(f32[10] x, f32[10] y)"):
        main = fine(text).main()
        assert [p.attrs["number"] for p in main.params] == [0, 1] and main.result().op.name == "add" and len(list(main.shown())) == 1


PREFIXES: dict[str, Callable[[int], str]] = {
    "glog": lambda i: f"I0000 00:00:17.{i:06d}   {1000 + i} hlo_dump.cc:{100 + i}] ",
    "logging": lambda i: f"2026-01-01 12:00:{i:02d},123 - jax._src - INFO - ",
    "rank": lambda i: f"[rank{i % 2}]: ",
    "tensorflow": lambda i: f"2024-01-01 00:00:00.{i:06d}: I xla/service/dump.cc:{i}] ",
    "words": lambda i: "dump> ",
}


@pytest.mark.parametrize("name", PREFIXES)
def test_log_prefixes_are_looked_through(name: str) -> None:
    text = "".join(PREFIXES[name](i) + line + "\n" for i, line in enumerate(MODULE.splitlines()))
    module = fine(text)
    assert difference(module, fine(MODULE)) == "" and sniff(text) >= 0.9
    node = module.main().nodes[4]
    assert module.scope(node) == "jit(f)/add" and text[node.loc:].startswith("sum = ")


def test_a_prefix_on_the_first_line_alone() -> None:
    assert difference(fine("I0101 00:00:01.5 7 a.cc:1] " + MODULE), fine(MODULE)) == ""


@pytest.mark.parametrize("name", ["HloModule.1", "ENTRY.2", "HloModule-x", "ROOT.3"])
def test_names_may_begin_with_a_keyword(name: str) -> None:
    module = fine(f"HloModule m\n\n{name} {{\n  ROOT p = f32[] parameter(0)\n}}\n\nENTRY e {{\n  {name} = f32[] parameter(0)\n"
                  f"  ROOT c = f32[] call({name}), to_apply={name}\n}}\n")
    assert list(module.graphs) == [name, "e"] and module.entry == "e"


def test_other_output_around_modules() -> None:
    text = f"step 1, loss=3.2\nLinear(in_features=3)\n{MODULE}\nTraceback? no\n{{'a': 1}}\n\n{MODULE.replace('jit_f', 'jit_h')}bye\n"
    got = reading(text)
    assert got.ok and [m.name for m in got.modules] == ["jit_f", "jit_h"]
    assert {f.code for f in got.findings} == {"HLO024"} and len(got.findings) == 3
    assert got.modules[1].source.text[got.modules[1].main().nodes[0].loc:].startswith("x = ")


def test_lit_files() -> None:
    text = "// RUN: hlo-opt %s | FileCheck %s\n\n// CHECK-LABEL: HloModule jit_f\n// CHECK: ENTRY %x {\n" + MODULE + "// CHECK: }\n// -----\n" + FRAMES
    got = reading(text)
    assert got.ok and not got.findings and [m.name for m in got.modules] == ["jit_f", "jit_g"]


def test_line_ends_of_windows() -> None:
    text = MODULE.replace("\n", "\r\n")
    assert difference(fine(text), fine(MODULE)) == ""


def test_no_newline_at_the_end() -> None:
    assert difference(fine(MODULE.rstrip()), fine(MODULE)) == ""


def test_unknown_opcodes_are_kept() -> None:
    got = reading(MODULE.replace(" pad(%x, %zero), padding=1_1x0_0", " padd(%x, %zero), padding=1_1x0_0, odd={1,{2}}"))
    node = next(n for n in got.module().main().nodes if n.name == "padded")
    assert not got.ok and not node.op.known and node.op.name == "padd" and [o.name for o in node.operands] == ["x", "zero"]
    assert len(got.module().main().nodes) == 11
    assert dict(got.module().raw(node))["odd"] == "{1,{2}}"


ANY_ORDER = """HloModule m

ENTRY main {
  p = f32[4] parameter(0)
  z = f32[] constant(0)
  c = f32[4] call(p), to_apply=twice
  ROOT r = f32[] reduce(c, z), dimensions={0}, to_apply=add
}

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

twice {
  a = f32[4] parameter(0)
  n = f32[4] map(a), dimensions={0}, to_apply=half
  ROOT t = f32[4] add(a, n)
}

half {
  a = f32[] parameter(0)
  ROOT n = f32[] negate(a)
}
"""


def test_a_computation_may_be_printed_after_its_callers() -> None:
    got = reading(ANY_ORDER)
    module = got.module()
    assert got.ok and not got.findings and module.entry == "main"
    assert list(module.graphs) == ["half", "twice", "add", "main"]
    assert [body for node in module.main().nodes for body in node.bodies] == [module.graphs["twice"], module.graphs["add"]]
    assert all(graph.root is not None and "missing" not in graph.notes for graph in module.graphs.values())
    assert module.graphs["half"].loc == ANY_ORDER.index("half {")


@pytest.mark.parametrize(("old", "new", "message"), [
    ("negate(a)", "map(a), dimensions={}, to_apply=half", "%n calls half, which calls half: HLO has no recursion"),
    ("ROOT n = f32[] negate(a)", "z = f32[4] broadcast(a), dimensions={}\n  c = f32[4] call(z), to_apply=twice\n  ROOT n = f32[] negate(a)",
     "%c calls twice, which calls half: HLO has no recursion"),
    ("to_apply=half", "to_apply=third", "there is no computation third in the text"),
])
def test_computations_that_call_their_callers_or_are_missing(old: str, new: str, message: str) -> None:
    got = reading(ANY_ORDER.replace(old, new))
    assert got.ok and [(f.code, f.message) for f in got.findings] == [("HLO006", message)]


def test_a_fragment_without_its_callee_is_read() -> None:
    got = reading(MODULE[MODULE.index("ENTRY"):])
    assert got.ok and [f.code for f in got.findings] == ["HLO006"]
    body_of = got.module().main().nodes[5].bodies[0]
    assert body_of.name == "add_f32" and body_of.root is None and "add_f32" not in got.module().graphs


def test_the_collector_is_left_as_it_was() -> None:
    fine(MODULE)
    assert gc.isenabled()
    gc.disable()
    try:
        fine(MODULE)
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("text", ["stablehlo.add %0, %1", "graph(%x : Tensor):\n  return (%x)\n", "", "hello world\n", "{\"a\": 1}"])
def test_sniff_leaves_others_alone(text: str) -> None:
    assert sniff(text) == 0
    got = reading(text)
    assert not got.ok and not got.modules and got.findings[-1].code == "HLO025"


def test_long_backend_configs_are_neither_copied_nor_remembered() -> None:
    import tracemalloc

    lines = "".join(f'  n{i} = f32[2]{{0}} negate(p), backend_config={{"n":{i},"text":"{"x" * 50_000}"}}\n' for i in range(60))
    text = f"HloModule m\n\nENTRY e {{\n  p = f32[2]{{0}} parameter(0)\n{lines}  ROOT r = f32[2]{{0}} negate(n59)\n}}\n"
    reading(text)  # what is imported at the first reading does not count
    tracemalloc.start()
    try:
        got = reading(text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert got.ok and len(got.module().main().nodes) == 62
    assert peak < len(text) / 8


def test_a_primitive_is_read_from_its_declaration_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._ops, ("hlo", "softsign"), Op("softsign", kind=Kind.ELEMENTWISE, infer=lambda node: node.operands[0].type))
    try:
        got = reading("HloModule m\nENTRY e {\n  x = f32[4] parameter(0)\n  y = f32[4] softsign(x)\n  ROOT z = softsign(y)\n}\n")
    finally:
        OPCODES.pop("softsign", None)
    assert got.ok and [str(node.type) for node in got.module().main().nodes] == ["f32[4]"] * 3
