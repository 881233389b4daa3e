"""Exported programs and FX graphs: every form of a program is one model, which runs; what is broken is refused at its place."""
from __future__ import annotations

import json
import warnings
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irscope import RunOptions, ShowOptions, UserError, load, show
from irscope.api.running import run
from irscope.diff.compare import compare
from irscope.formats.detect import detect
from irscope.formats.export import print_module, read, sniff
from irscope.formats.export.signature import Exported
from irscope.formats.torchscript.attributes import Call
from irscope.graph import Effect, Module, Node, Reading
from irscope.ops.module_attributes import Interface
from irscope.source import SourceText

DATA = Path(__file__).resolve().parents[1] / "data" / "export"
FORMS = ("net.pt2", "net.ep.txt", "net.readable.txt")


def written(text: str) -> Reading:
    return read(SourceText("t.txt", text))


def module_of(text: str) -> Module:
    reading = written(text)
    assert reading.ok, [finding.render() for finding in reading.findings]
    return reading.module()


def shown(module: Module) -> dict[str, Node]:
    return {node.name: node for graph in module.graphs.values() for node in graph.shown()}


SMALL = '''class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[2, 3]"):
        # File: /src/m.py:7 in forward, code: return (x + 1).relu();  x = None
        add: "f32[2, 3]" = torch.ops.aten.add.Tensor(x, 1);  x = None
        relu: "f32[2, 3]" = torch.ops.aten.relu.default(add);  add = None
        return (relu,)
'''


# ---------------------------------------------------------------------- one model


@pytest.mark.parametrize("form", FORMS[1:])
def test_every_form_of_a_program_is_the_same_module(form: str) -> None:
    archive, text = load(DATA / "net.pt2"), load(DATA / form)
    assert archive.format == text.format == "export" and archive.ok and text.ok
    assert compare(archive.module(), text.module()).same


def test_a_decomposed_program_is_another_one() -> None:
    core = load(DATA / "net.core.pt2").module()
    assert compare(core, load(DATA / "net.core.ep.txt").module()).same
    assert not compare(core, load(DATA / "net.ep.txt").module()).same


@pytest.mark.parametrize("form", FORMS)
def test_names_types_and_counts_are_those_of_fx(form: str) -> None:
    nodes = shown(load(DATA / form).module())
    assert len(nodes) == 23
    types = {"linear": "f32[s77, 3]", "getitem_1": "f32[s77, 2]", "gt": "b8[]", "reshape": "f32[2*s77]", "cos": "f32[s77, 3]"}
    assert {name: str(nodes[name].type) for name in types} == types
    assert nodes["linear"].op.name == "aten::linear"
    assert [body.name for body in nodes["cond"].bodies] == ["true_graph_0", "false_graph_0"]


@pytest.mark.parametrize("form", FORMS[:2])
def test_the_signature_and_the_ranges_are_kept(form: str) -> None:
    exported = Exported.of(load(DATA / form).module())
    assert exported.signature is not None
    assert [(p.kind, p.name, p.target) for p in exported.signature.inputs[2:]] == [
        ("BUFFER", "b_steps", "steps"), ("BUFFER", "b_scale", "scale"), ("CONSTANT_TENSOR", "c_shift", "shift"), ("USER_INPUT", "x", ""),
        ("USER_INPUT", "flip", "")]
    assert [p.persistent for p in exported.signature.inputs[2:4]] == [True, False]
    assert Interface.of(load(DATA / form).module()).ranges == {"s77": ("2", "64")}


def test_a_call_is_known_as_its_user_writes_it() -> None:
    interface = Interface.of(load(DATA / "net.pt2").module())
    assert interface.input_paths == {"x": "x", "flip": "flip"} and interface.hints == {"s77": 3}
    assert interface.result_paths == ("['z']", "['rest'][0]", "['rest'][1]", "['top']", "['n']")


LEAF: dict[str, Any] = {"type": None, "context": None, "children_spec": []}


def tree(kind: str, context: Any, *children: Any) -> dict[str, Any]:
    return {"type": kind, "context": context if isinstance(context, str) else json.dumps(context), "children_spec": list(children)}


def called(positional: list[Any], keywords: dict[str, Any], names: list[str], **more: Any) -> Module:
    """The archive as if ``x`` and ``flip`` were the leaves of these trees."""
    call = tree("builtins.tuple", None, tree("builtins.tuple", None, *positional), tree("builtins.dict", list(keywords), *keywords.values()))

    def change(record: Any) -> None:
        held = record["graph_module"]
        held["module_call_graph"][0]["signature"].update(in_spec=json.dumps([1, call]), forward_arg_names=names)
        held.update(more)
    return load(changed(change), name="net.pt2").module()


@pytest.mark.parametrize(("positional", "keywords", "names", "expected"), [
    ([tree("builtins.dict", ["a", 3], LEAF, tree("builtins.list", None, LEAF))], {}, ["d"], ["d['a']", "d[3][0]"]),
    ([tree("Batch", [["ids", "mask"], []], LEAF, LEAF)], {}, ["b"], ["b.ids", "b.mask"]),
    ([tree("collections.namedtuple", "src.Q", LEAF, LEAF)], {}, ["q"], ["q.a", "q.b"]),
    ([LEAF], {"flag": LEAF}, [], ["args[0]", "flag"]),
    ([tree("odd.Thing", "not JSON", LEAF, LEAF)], {}, ["t"], ["t[0]", "t[1]"]),
])
def test_inputs_are_known_by_their_place_in_the_call(positional: list[Any], keywords: dict[str, Any], names: list[str],
                                                     expected: list[str]) -> None:
    module = called(positional, keywords, names, treespec_namedtuple_fields={"src.Q": {"field_names": ["a", "b"]}})
    assert list(Interface.of(module).input_paths.values()) == expected


def test_trees_that_do_not_fit_tell_nothing() -> None:
    assert Interface.of(called([LEAF], {}, ["x"])).input_paths == {}
    long = tree("builtins.dict", ["k" * 600], LEAF)
    one = tree("builtins.tuple", None, LEAF)
    specs: list[object] = [[2, LEAF], [1, one], [1, tree("builtins.tuple", None, one, tree("builtins.dict", [], LEAF))], [1, 7], {}, "x",
                 [1, tree("builtins.tuple", None, tree("builtins.tuple", None, long, LEAF), tree("builtins.dict", []))]]
    for spec in specs:
        odd = changed(lambda r, spec=spec: r["graph_module"]["module_call_graph"][0]["signature"].update(in_spec=json.dumps(spec)))
        assert Interface.of(load(odd).module()).input_paths == {}


def test_inputs_are_given_and_results_named_by_their_place_in_the_call(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    values, expected = arrays()
    tree_of = [1, tree("builtins.tuple", None, tree("builtins.tuple", None, tree("builtins.dict", ["a", "flip"], LEAF, LEAF)),
                       tree("builtins.dict", []))]
    path.write_bytes(changed(lambda r: r["graph_module"]["module_call_graph"][0]["signature"].update(
        in_spec=json.dumps(tree_of), forward_arg_names=["d"])))
    result = run(path, inputs={"d['a']": values["x"]})
    np.testing.assert_allclose(result.outputs[0], expected[0], rtol=1e-5)
    assert result.label(1) == "out1 ['rest'][0]" and result.as_json()["outputs"][3]["path"] == "['top']"  # type: ignore[index]
    with pytest.raises(UserError, match="x is given twice"):
        run(path, inputs={"d['a']": values["x"], "x": values["x"]})


@pytest.mark.parametrize("form", FORMS[:2])
def test_sizes_outside_of_their_range_are_refused(form: str) -> None:
    for call in (lambda: run(DATA / form, RunOptions(shapes={"x": (65, 4)})), lambda: show(DATA / form, ShowOptions(shapes={"x": (65, 4)})),
                 lambda: run(DATA / form, inputs={"x": np.zeros((65, 4), np.float32)})):
        with pytest.raises(UserError, match="dimension 0 of input x is 65, outside of the range of s77: 2 to 64"):
            call()
    assert "s77 2 to 64" in str(show(DATA / form))


def test_inputs_agree_on_their_symbols() -> None:
    text = PAIR.replace("OTHER", "s0")
    x, y = np.zeros((2, 3), np.float32), np.zeros((1, 3), np.float32)
    assert run(text, inputs={"x": x, "y": x}).outputs[0].shape == (2, 3)
    with pytest.raises(UserError, match="s0 is 2 in input x, and 1 in dimension 0 of input y"):
        run(text, inputs={"x": x, "y": y})
    assert run(PAIR.replace("OTHER", "s1"), inputs={"x": x, "y": y}).outputs[0].shape == (2, 3)


PAIR = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[s0, 3]", y: "f32[OTHER, 3]"):
        add = torch.ops.aten.add.Tensor(x, y)
        return (add,)
"""


def test_mutations_are_no_results() -> None:
    signature = Exported.of(load(DATA / "net.core.ep.txt").module()).signature
    assert signature is not None
    assert signature.outputs[0].kind == "BUFFER_MUTATION" and signature.outputs[0].target == "steps"
    assert signature.results() == [1, 2, 3, 4, 5, 6]


def test_nodes_know_their_lines_and_modules() -> None:
    module = load(DATA / "net.pt2").module()
    linear = shown(module)["linear"]
    assert module.scope(linear) == "inner"
    assert [str(line) for line in module.call_stack(linear)] == ["/site-packages/torch/nn/modules/linear.py:134", "/src/net.py:13"]
    assert module.source.text[linear.loc:].startswith('linear: "f32[s77, 3]" = torch.ops.aten.linear.default(')
    text = load(DATA / "net.ep.txt").module()
    assert [str(line) for line in text.call_stack(shown(text)["mul"])] == ["/src/net.py:13"]


# ---------------------------------------------------------------------- running


def arrays() -> tuple[dict[str, Any], list[Any]]:
    with np.load(DATA / "net.npz") as held:
        values = {name: held[name] for name in held.files}
    return values, [values.pop(f"out{i}") for i in range(5)]


@pytest.mark.parametrize("form", ["net.pt2", "net.core.pt2"])
def test_an_archive_runs_with_the_values_that_it_holds(form: str) -> None:
    values, expected = arrays()
    result = run(DATA / form, inputs={"x": values["x"]})
    assert not result.interpreted_ops
    for made, wanted in zip(result.outputs, expected, strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-5)


def test_a_text_runs_with_given_weights() -> None:
    values, expected = arrays()
    x = values.pop("x")
    for made, wanted in zip(run(DATA / "net.ep.txt", inputs={"x": x}, weights=values).outputs, expected, strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-5)


def test_a_text_without_types_runs_with_the_types_of_its_inputs() -> None:
    weight, bias, x = np.eye(3, 4, dtype=np.float32), np.ones(3, np.float32), np.arange(8, dtype=np.float32).reshape(2, 4)
    made = run(DATA / "net.graph.txt", inputs={"input": x}, weights={"p_0_weight": weight, "p_0_bias": bias}).outputs[0]
    y = x[:, :3] + 1
    np.testing.assert_allclose(made, 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y ** 3))), rtol=1e-4)


def test_keywords_are_bound_by_the_schema() -> None:
    text = SMALL.replace("torch.ops.aten.add.Tensor(x, 1)", "torch.ops.aten.add.Tensor(x, x, alpha = 3)")
    assert Call.of(shown(module_of(text))["add"]).keywords == ("alpha",)
    x = np.arange(6, dtype=np.float32).reshape(2, 3) - 2
    assert run(text, inputs={"x": x}).outputs[0].tolist() == np.maximum(4 * x, 0).tolist()


# ---------------------------------------------------------------------- texts


def test_comments_and_tails_are_no_statements() -> None:
    module = module_of(SMALL)
    assert list(shown(module)) == ["add", "relu"]
    assert [str(line) for line in module.call_stack(shown(module)["relu"])] == ["/src/m.py:7"]


@pytest.mark.parametrize(("line", "operator", "target"), [
    ("y = x + 1", "aten::add", "_operator.add"), ("y = x >= 0", "aten::ge", "_operator.ge"), ("y = -x", "aten::neg", "_operator.neg"),
    ("y = x.relu()", "aten::relu", "method relu"), ("y = torch.relu(x)", "aten::relu", "torch.relu"),
    ("y = torch._C._nn.linear(x, x)", "aten::linear", "torch._C._nn.linear"), ("y = torch.sym_max(1, 2)", "prim::max", "torch.sym_max"),
    ("y = torch.ops.lab.f.default(x)", "lab::f", "torch.ops.lab.f.default"), ('y = getattr(self.m, "0")(x)', "module m.0", "module m.0"),
    ("y = torch.ops.prims.convert_element_type.default(x, torch.float16)", "prims::convert_element_type",
     "torch.ops.prims.convert_element_type.default"),
])
def test_what_fx_calls_is_an_operator(line: str, operator: str, target: str) -> None:
    node = shown(module_of(f"class M(torch.nn.Module):\n    def forward(self, x: \"f32[2]\"):\n        {line}\n        return (y,)\n"))["y"]
    assert (node.op.name, Call.of(node).target) == (operator, target)


def test_a_listing_writes_texts_without_quotes() -> None:
    module = module_of("graph():\n    %x : [num_users=1] = placeholder[target=x]\n"
                       "    %y : [num_users=1] = call_function[target=torch.ops.aten.einsum.default](args = (bi,ij->bj, [%x, %x]), kwargs = {})\n"
                       "    %z : [num_users=1] = call_function[target=torch.ops.aten.div.Tensor_mode](args = (%y, -inf), "
                       "kwargs = {rounding_mode: floor})\n    return (z,)")
    text = print_module(module)
    assert "torch.ops.aten.einsum.default('bi,ij->bj', [x, x])" in text
    assert "torch.ops.aten.div.Tensor_mode(y, -inf, rounding_mode = 'floor')" in text


def test_lines_of_a_log_are_read_without_their_prefixes() -> None:
    prefix = "V1122 13:54:15.980000 12 torch/_x.py:34] [0/0] [__graph_code] "
    log = "".join(f"{prefix}{line}\n" for line in [" ===== graph =====", *f"/t/lazy.py {SMALL}".splitlines()]).replace(
        '"f32[2, 3]"', '"f32[2, 3][3, 1]cpu"')
    assert detect(log) == "export"
    assert [str(p.type) for p in module_of(log).main().params] == ["f32[2, 3]"]
    assert compare(module_of(log), module_of(SMALL)).same


def test_inputs_that_are_flattened_are_those_of_the_graph() -> None:
    joint = SMALL.replace('(self, x: "f32[2, 3]")', "(self, primals)").replace(
        "        # File", '        x: "f32[2, 3]"; \n        x, = fx_pytree.tree_flatten_spec([primals], self._in_spec)\n        # File').replace(
        "return (relu,)", "return pytree.tree_unflatten([relu], self._out_spec)")
    assert compare(module_of(joint), module_of(SMALL)).same


def test_a_runnable_script_says_its_shapes_when_it_loads() -> None:
    script = ("import torch\nclass Repro(torch.nn.Module):\n    def __init__(self) -> None:\n        super().__init__()\n\n"
              "    def forward(self, arg0_1):\n        add = torch.ops.aten.add.Tensor(arg0_1, 1);  arg0_1 = None\n        return (add,)\n\n"
              "def load_args(reader):\n    buf0 = reader.storage(None, 48)\n    reader.tensor(buf0, (2, 3), dtype=torch.int64)  # arg0_1\n"
              "load_args._version = 0\nmod = Repro()\n")
    assert detect(script) == "export"
    assert [str(p.type) for p in module_of(script).main().params] == ["i64[2, 3]"]


@pytest.mark.parametrize("form", [*FORMS, "net.core.pt2", "net.graph.txt"])
def test_what_is_printed_is_read_as_the_same(form: str) -> None:
    module = load(DATA / form).module()
    text = print_module(module)
    again = written(text)
    assert again.ok and compare(module, again.module()).same
    assert print_module(again.module()) == text


@pytest.mark.parametrize("text", ["import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n", "graph G {\n}\n"])
def test_programs_of_users_are_no_graphs(text: str) -> None:
    assert sniff(text) == 0


# ---------------------------------------------------------------------- faults


@pytest.mark.parametrize(("old", "new", "place", "words"), [
    ("relu.default(add)", "relu.default(nowhere)", "5:57", "nowhere is not defined here"),
    ("Tensor(x, 1)", "Tensor(x, [1", "4:53", "is never closed"),
    ("f32[2, 3]\"):", "f32[[2, 3]\"):", "2:26", "is no type"),
    ("        relu:", "       relu:", "5:8", "unexpected indent"),
    ("        return (relu,)\n", "", "5:9", "before the return"),
    ("        relu:", "        import os\n        relu:", "5:9", "an import"),
    ("add.Tensor(x, 1)", "add.Tensor(x, *x)", "4:57", "without *"),
    ("add.Tensor(x, 1)", "add.Tensor(x, " + "(" * 80 + "1" + ")" * 80 + ")", "4:9", "nested"),
    ("torch.ops.aten.relu.default(add)", "torch.ops.higher_order.cond(add, self.gone)", "5:62", "no value"),
])
def test_faults_are_told_at_their_place(old: str, new: str, place: str, words: str) -> None:
    assert old in SMALL
    reading = written(SMALL.replace(old, new, 1))
    assert not reading.ok
    finding = reading.findings[0]
    assert words in finding.message and str(finding.place()) == place


def test_a_subgraph_without_a_class_is_a_fault() -> None:
    text = SMALL.replace("        relu", "        gone_0 = self.gone_0\n        c = torch.ops.higher_order.cond(add, gone_0, gone_0, (add,))\n        relu", 1)
    assert "no class gone_0 follows" in written(text).findings[0].message


@pytest.mark.parametrize(("old", "new", "words"), [
    ("call_function", "call_banana", "no opcode 'call_banana'"), ("num_users=1] = call", "num_users=] = call", "num_users=NUMBER"),
    ("(%x,)", "(%gone,)", "%gone is not defined"), ("(args = (%x,)", "(args = (%x,", "syntax"),
])
def test_faults_of_a_listing(old: str, new: str, words: str) -> None:
    text = ("graph():\n    %x : [num_users=1] = placeholder[target=x]\n"
            "    %y : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%x,), kwargs = {})\n    return (y,)")
    assert written(text).ok
    assert words in written(text.replace(old, new, 1)).findings[0].message


# ---------------------------------------------------------------------- archives


def changed(change: Any = None, name: str = "models/model.json", data: bytes | None = None, drop: str = "") -> bytes:
    """The archive with a change of its JSON, with other bytes for an entry, or without one."""
    buffer = BytesIO()
    with zipfile.ZipFile(DATA / "net.pt2") as held, zipfile.ZipFile(buffer, "w") as made:
        for entry in held.infolist():
            body = held.read(entry)
            if entry.filename.endswith(name):
                if data is not None:
                    body = data
                elif change is not None:
                    record = json.loads(body)
                    change(record)
                    body = json.dumps(record).encode()
            if not drop or not entry.filename.endswith(drop):
                made.writestr(entry.filename, body)
    return buffer.getvalue()


def graph(record: Any) -> Any:
    return record["graph_module"]["graph"]


@pytest.mark.parametrize(("change", "words"), [
    (lambda r: r["schema_version"].update(major=99), "schema version 99"),
    (lambda r: graph(r).pop("nodes"), "'nodes' is missing"),
    (lambda r: graph(r)["nodes"][0].update(target=7), "nodes[0].target: a text is expected"),
    (lambda r: graph(r)["nodes"].reverse(), "is not defined before this place"),
    (lambda r: graph(r)["tensor_values"].pop("linear"), "tensor_values has no type of linear"),
    (lambda r: graph(r)["tensor_values"]["x"].update(dtype=999), "dtype: torch has no element type with the number 999"),
    (lambda r: graph(r)["tensor_values"]["x"].update(sizes="8"), "sizes: a list is expected"),
    (lambda r: graph(r)["nodes"][2]["inputs"][0]["arg"].update(as_int=1), "has one kind"),
    (lambda r: r["graph_module"]["signature"]["input_specs"].pop(), "6 inputs, the graph has 7"),
    (lambda r: graph(r)["tensor_values"]["x"]["strides"].append({"as_int": -4}), "strides[2].as_int: a size or a stride is a number from 0"),
    (lambda r: graph(r)["tensor_values"]["x"]["sizes"].append({"as_int": 1 << 70}), "sizes[2].as_int: a size or a stride is a number from 0"),
    (lambda r: graph(r)["nodes"][2]["inputs"][0].update(arg={"as_float": 10**400}), "arg.as_float: the number is too large"),
    (lambda r: graph(r)["nodes"][2]["inputs"][0].update(arg={"as_complex": {"real": 10**400, "imag": 1}}), "real: the number is too large"),
])
def test_broken_json_is_refused_by_its_path(change: Any, words: str) -> None:
    with pytest.raises(UserError) as caught:
        load(changed(change), name="net.pt2")
    assert words in caught.value.message


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


@pytest.mark.parametrize(("data", "words"), [
    (changed(data=b""), "it is empty"), (changed(data=b'{"graph_mod'), "it is not JSON"), (changed(data=nested(100_000)), "nested too deeply"),
    (changed(drop="models/model.json"), "no models/model.json"), (changed()[:9000], "central directory"),
])
def test_damaged_archives_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(UserError) as caught:
        load(data, name="net.pt2")
    assert words in caught.value.message


def hostile(path: str, body: bytes = b"x", flags: int = 0, packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = BytesIO(changed())
    with zipfile.ZipFile(buffer, "a", packing) as made:
        made.writestr(path, body)
    data = buffer.getvalue()
    if flags:
        at = data.rfind(b"PK\x01\x02")
        data = data[:at + 8] + bytes([data[at + 8] | flags]) + data[at + 9:]
    return data


SIZE, OFFSET = 24, 42
"""Places in an entry of a zip's directory: the unpacked size, and the place of its data."""


def patched(at: int, value: bytes) -> bytes:
    """An archive with other bytes in the last entry of its directory."""
    data = hostile("model/secret", packing=zipfile.ZIP_STORED)
    begin = data.rfind(b"PK\x01\x02") + at
    return data[:begin] + value + data[begin + len(value):]


def doubled() -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # zipfile's own words about the same path
        return hostile("net/models/model.json", b"{}")


def renamed_weight() -> bytes:
    """A weight whose own header has another path than the directory."""
    data = changed()
    at = data.index(b"data/weights/weight_0")
    return data[:at] + b"data/weights/weight_9" + data[at + len(b"data/weights/weight_9"):]


@pytest.mark.parametrize(("data", "words"), [
    (patched(OFFSET, bytes(4)), "lies over another one"), (patched(OFFSET, b"\xff\xff\xff\x7f"), "reaches beyond its end"),
    (patched(SIZE, b"\x09"), "is not packed, but the zip's directory says two sizes"), (patched(SIZE, b"\xff\xff\xff\x7f"), "unpacks to"),
    (doubled(), "two entries with the path"),
])
def test_archives_whose_directory_lies_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(UserError) as caught:
        load(data, name="net.pt2")
    assert words in caught.value.message


def test_a_weight_under_another_path_is_refused() -> None:
    with pytest.raises(UserError, match="weight_0 is damaged: its header and the zip's directory name it differently"):
        load(renamed_weight()).module().stored["p_inner_weight"]


def test_archives_of_too_many_entries_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irscope.formats.export.archive.MOST_ENTRIES", 5)
    with pytest.raises(UserError, match=r"entries; a program has at most 5"):
        load(changed(), name="net.pt2")


@pytest.mark.parametrize("number", [3, 5, 7, 9])
def test_other_major_versions_are_refused(number: int) -> None:
    data = changed(lambda r: r.update(schema_version={"major": number, "minor": 1}, torch_version="2.4.0"))
    with pytest.raises(UserError) as caught:
        load(data, name="net.pt2")
    assert f"schema version {number} (torch 2.4.0); irscope reads 8" in caught.value.message and "print(ep)" in caught.value.help


@pytest.mark.parametrize("minor", [1, 20, 99])
def test_all_minor_versions_of_the_known_major_are_read(minor: int) -> None:
    assert load(changed(lambda r: r.update(schema_version={"major": 8, "minor": minor}))).ok


def test_archives_of_the_first_layout_are_refused_by_name() -> None:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr("serialized_exported_program.json", "{}")
        made.writestr("serialized_state_dict.pt", b"")
    with pytest.raises(UserError, match="of an early torch") as caught:
        load(buffer.getvalue(), name="net.pt2")
    assert "torch.export.load" in caught.value.help


@pytest.mark.parametrize(("data", "words"), [
    (hostile("../../etc/passwd"), "leads out of the archive"), (hostile("/etc/passwd"), "leads out of the archive"),
    (hostile("model/secret", flags=1), "is encrypted"), (hostile("model/bomb", bytes(50_000_000)), "unpacks to"),
])
def test_hostile_archives_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(UserError) as caught:
        load(data, name="net.pt2")
    assert words in caught.value.message


def weight(index: Any) -> Any:
    return index["config"]["inner.weight"]["tensor_meta"]


@pytest.mark.parametrize(("data", "words"), [
    (changed(name="data/weights/weight_0", data=b"1234"), "too short for 'inner.weight'"),
    (changed(drop="model_weights_config.json"), "model_weights_config.json is missing"),
    (changed(lambda r: r["config"]["inner.weight"].update(use_pickle=True), "model_weights_config.json"), "stored as a pickle"),
    (changed(lambda r: weight(r)["strides"].__setitem__(0, {"as_int": -1000}), "model_weights_config.json"), "strides[0].as_int: a size or a"),
    (changed(lambda r: weight(r)["sizes"].__setitem__(0, {"as_int": -1}), "model_weights_config.json"), "sizes[0].as_int: a size or a stride"),
    (changed(lambda r: weight(r).update(sizes=[{"as_int": 0}, {"as_int": 1 << 62}]), "model_weights_config.json"), "no 64-bit number"),
])
def test_values_that_cannot_be_read_are_refused_when_they_are_needed(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    path.write_bytes(data)
    assert load(path).ok
    with pytest.raises(UserError) as caught:
        run(path)
    assert words in caught.value.message


def test_a_large_archive_is_read_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values, expected = arrays()
    monkeypatch.setattr("irscope.source.files.LARGE", 1000)
    path = tmp_path / "large.pt2"
    path.write_bytes((DATA / "net.pt2").read_bytes())
    module = load(path).module()
    assert module.stored["p_inner_weight"].tolist() == values["p_inner_weight"].tolist()
    np.testing.assert_allclose(run(path, inputs={"x": values["x"]}).outputs[0], expected[0], rtol=1e-5)
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as made:
        made.writestr("a.npy", bytes(5000))
    with pytest.raises(UserError, match="npz archive"):
        load(other)


def test_tensors_share_the_bytes_of_an_entry_by_their_strides() -> None:
    def transposed(record: Any) -> None:
        meta = record["config"]["inner.weight"]["tensor_meta"]
        meta["sizes"], meta["strides"] = meta["sizes"][::-1], meta["strides"][::-1]
    values, _ = arrays()
    module = load(changed(transposed, "model_weights_config.json"), name="net.pt2").module()
    assert module.stored["p_inner_weight"].tolist() == values["p_inner_weight"].T.tolist()


def test_assertions_have_an_effect() -> None:
    text = SMALL.replace("        relu", '        ok = torch.ops.aten._assert_tensor_metadata.default(add, dtype = torch.float32);  ok = None\n        relu', 1)
    assert shown(module_of(text))["ok"].op.effect is Effect.CONTROL
    assert not compare(module_of(text), module_of(SMALL)).same


@pytest.mark.parametrize("path", ["self.up", "self.layers.up", 'getattr(self, "0")', 'getattr(self.layers, "0").up', 'getattr(self, "class")'])
def test_calls_of_modules_are_printed_as_python_reads_them(path: str) -> None:
    text = f'class GraphModule(torch.nn.Module):\n    def forward(self, x: "f32[8]"):\n        a: "f32[8]" = {path}(x)\n        return a\n'
    reading = load(text)
    printed = print_module(reading.module())
    assert f'a: "f32[8]" = {path}(x)' in printed
    assert load(printed).ok


FAR = (2**63 - 1, -2**63, 4, -3)


@pytest.mark.parametrize("diagonal", FAR)
def test_diagonals_far_from_a_matrix(diagonal: int) -> None:
    line = '        {0}: "{1}" = torch.ops.aten.{0}{2}\n'
    lines = [line.format(word, "f32[2, 3]", f".default(x, {diagonal})") for word in ("triu", "tril")]
    lines += [line.format(f"{word}_indices", "i64[2, n]", f".default(2, 3, {diagonal})") for word in ("triu", "tril")]
    text = 'class GraphModule(torch.nn.Module):\n    def forward(self, x: "f32[2, 3]"):\n' + "".join(lines) \
        + "        return (triu, tril, triu_indices, tril_indices)\n"
    x = np.ones((2, 3), np.float32)
    near = max(-9, min(diagonal, 9))
    wanted = [np.triu(x, near), np.tril(x, near), np.stack(np.triu_indices(2, near, 3)), np.stack(np.tril_indices(2, near, 3))]
    for got, want in zip(run(written(text), RunOptions(engine="reference"), inputs={"x": x}).outputs, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("index", [-3, 2])
def test_results_that_a_call_does_not_have(index: int) -> None:
    text = f'''class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4, 3]"):
        split = torch.ops.aten.split.Tensor(x, 2)
        part: "f32[2, 3]" = split[{index}]
        return (part,)
'''
    with pytest.raises(UserError, match="it has no value for %part"):
        run(written(text))
