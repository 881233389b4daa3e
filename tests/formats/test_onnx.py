"""Reading ONNX models: what the graph holds, and what is refused."""
from __future__ import annotations

import resource
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irscope
from irscope.analysis.survey import Survey
from irscope.formats import format_named
from irscope.formats.detect import read_data
from irscope.formats.onnx import package
from irscope.formats.onnx.operators import declared, names
from irscope.formats.onnx.wire import sniff_bytes
from irscope.graph import Graph, Node, Reading
from irscope.source import UserError
from tests.formats.onnx_models import BOOL, FLOAT, INT64, ModelProto, TensorProto, graph, model, node

helper = pytest.importorskip("onnx.helper")


def read(data: bytes, name: str = "model.onnx") -> Reading:
    return read_data(data, name)


def named(graph: Graph) -> dict[str, Node]:
    return {n.name: n for n in graph.nodes}


def test_values_have_the_names_and_types_of_the_file() -> None:
    reading = read(model([node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2), node("Add", ["a", "w"], ["y"])],
                         [("x", FLOAT, ["n", 4])], [("y", FLOAT, None), ("b", FLOAT, None)], {"w": np.ones(2, np.float32)}))
    assert reading.ok and reading.format == "onnx"
    module = reading.module()
    found = named(module.main())
    assert {name: str(found[name].type) for name in ("x", "a", "b", "y", "w")} == {
        "x": "f32[n,4]", "a": "f32[n,2]", "b": "f32[n,2]", "y": "f32[n,2]", "w": "f32[2]"}
    assert [p.name for p in module.main().params] == ["x"]
    assert Survey(module).n_nodes == 2
    assert dict(Survey(module).ops) == {"Split": 1, "Add": 1}


def test_open_dimensions_keep_the_names_of_shape_inference() -> None:
    reading = read(model([node("NonZero", ["x"], ["y"])], [("x", FLOAT, [2, 3])], [("y", INT64, None)]))
    assert str(named(reading.module().main())["y"].type).startswith("s64[2,unk__")


def test_a_body_takes_what_it_captures() -> None:
    then = graph([node("Add", ["x", "w"], ["t"])], [], [("t", FLOAT, [2])])
    other = graph([node("Neg", ["x"], ["e"])], [], [("e", FLOAT, [2])])
    reading = read(model([node("If", ["c"], ["y"], then_branch=then, else_branch=other)], [("c", BOOL, []), ("x", FLOAT, [2])],
                         [("y", FLOAT, [2])], {"w": np.ones(2, np.float32)}))
    module = reading.module()
    branch = named(module.main())["y"]
    assert [o.name for o in branch.operands] == ["c", "x", "w", "x"]
    assert [[p.name for p in body.params] for body in branch.bodies] == [["x", "w"], ["x"]]
    assert [body.name for body in branch.bodies] == ["y.then_branch", "y.else_branch"]


def test_functions_of_the_model_are_graphs() -> None:
    twice = helper.make_function("lab", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 21)])
    reading = read(model([node("Twice", ["x"], ["y"], domain="lab")], [("x", FLOAT, [2])], [("y", FLOAT, [2])], functions=[twice],
                         domains={"lab": 1}))
    assert list(reading.module().graphs) == ["lab.Twice", "g"]
    assert Survey(reading.module()).n_nodes == 2
    assert named(reading.module().main())["y"].op.name == "lab.Twice"


def test_operators_of_other_domains_are_opaque_by_name() -> None:
    reading = read(model([node("Mystery", ["x"], ["y"], domain="lab")], [("x", FLOAT, [2])], [("y", FLOAT, [2])], domains={"lab": 1}))
    op = named(reading.module().main())["y"].op
    assert reading.ok and op.name == "lab.Mystery" and not op.known


@pytest.mark.parametrize(("nodes", "message"), [
    ([node("Add", ["x", "b"], ["a"]), node("Neg", ["a"], ["b"])], "reads b before it is defined"),
    ([node("Neg", ["x"], ["b"]), node("Abs", ["x"], ["b"])], "the value b is defined twice"),
    ([node("Neg", ["gone"], ["b"])], "reads gone, which is not defined"),
])
def test_values_must_be_defined_once_and_before_their_users(nodes: list[object], message: str) -> None:
    reading = read(model(nodes, [("x", FLOAT, [2])], [("b", FLOAT, [2])]))
    assert not reading.ok
    assert message in " ".join(f.message for f in reading.findings)


def test_functions_must_not_call_each_other_in_a_cycle() -> None:
    imports = [helper.make_opsetid("lab", 1)]
    pair = [helper.make_function("lab", a, ["x"], ["y"], [node(b, ["x"], ["y"], domain="lab")], imports) for a, b in ("FG", "GF")]
    reading = read(model([node("F", ["x"], ["y"], domain="lab")], [("x", FLOAT, [2])], [("y", FLOAT, [2])], functions=pair,
                         domains={"lab": 1}))
    assert not reading.ok and "cycle" in reading.findings[0].message


def test_a_tensor_must_have_the_bytes_that_it_states() -> None:
    data = model([node("Add", ["x", "w"], ["y"])], [("x", FLOAT, [2])], [("y", FLOAT, [2])], {"w": np.ones(2, np.float32)})
    damaged = data.replace(b"\x08\x02\x10\x01", b"\x08\x7f\x10\x01")  # dims 2 becomes 127
    assert damaged != data
    reading = read(damaged)
    assert not reading.ok and "takes 508 bytes, but has 8" in reading.findings[0].message


def test_large_weights_of_one_type_are_not_equal() -> None:
    weights = {name: np.full((16,), value, np.float32) for name, value in (("v", 1.0), ("w", 2.0))}
    data = model([node("Mul", ["x", "v"], ["a"]), node("Mul", ["x", "w"], ["b"]), node("Sub", ["b", "a"], ["y"])],
                 [("x", FLOAT, [16])], [("y", FLOAT, [16])], weights)
    made = irscope.run(read(data), inputs={"x": np.ones(16, np.float32)})
    assert made.outputs[0].tolist() == [1.0] * 16


def test_a_cut_file_is_told_as_one() -> None:
    data = model([node("Neg", ["x"], ["y"])], [("x", FLOAT, [2])], [("y", FLOAT, [2])])
    with pytest.raises(UserError, match="cut off"):
        read(data[:-7])


def test_a_crash_of_shape_inference_is_survived() -> None:
    reading = read(model([node("LayerNormalization", ["x", "w"], ["y"], axis=2**31)], [("x", FLOAT, [2, 3]), ("w", FLOAT, [3])],
                         [("y", FLOAT, None)], opset=17))
    assert reading.ok
    with pytest.raises(UserError) as caught:
        irscope.run(reading)
    assert "axis" in caught.value.findings[0].message


def test_without_the_package_the_message_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "find_spec", lambda name: None)
    with pytest.raises(UserError) as caught:
        read(model([node("Neg", ["x"], ["y"])], [("x", FLOAT, [2])], [("y", FLOAT, [2])]))
    assert "pip install 'irscope[onnx]'" in str(caught.value.help)


def test_models_are_detected_by_their_outermost_fields() -> None:
    data = model([node("Neg", ["x"], ["y"])], [("x", FLOAT, [2])], [("y", FLOAT, [2])])
    assert sniff_bytes(data) >= 0.8 and sniff_bytes(data[:-5]) >= 0.8
    for other in (b"", b"\x0a\x05hello", b"PK\x03\x04", bytes(range(256)), b"\x08", b"\x08\x0a\x0a\x01x"):
        assert sniff_bytes(other) == 0


def test_scopes_come_from_names_and_from_the_metadata_of_exporters() -> None:
    newer = node("Neg", ["a"], ["b"])
    for key, value in (("pkg.torch.onnx.name_scopes", "['', 'layers.0', 'layers.0.attn', 'neg']"),
                       ("pkg.torch.onnx.stack_trace", 'File "net.py", line 7, in forward\n    return -x'),
                       ("pkg.torch.onnx.fx_node", "%neg : [num_users=1] = call_function[target=torch.ops.aten.neg.default]")):
        entry = newer.metadata_props.add()
        entry.key, entry.value = key, value
    older = node("Abs", ["x"], ["a"], name="/layers.1/mlp/Abs")
    module = read(model([older, newer], [("x", FLOAT, [2])], [("b", FLOAT, [2])])).module()
    found = named(module.main())
    assert [module.scope(found[name]) for name in "ab"] == ["layers.1/mlp", "layers/0/attn"]
    assert [str(line) for line in module.call_stack(found["b"])] == ["net.py:7"]
    assert [module.raw(found[name]).get("fx_node", "")[:4] for name in "ab"] == ["", "%neg"]
    assert module.source.text[found["b"].loc:].startswith("b = Neg (a)")


# ---------------------------------------------------------------------- data in other files


def external(folder: Path, location: str, size: int = 8) -> Path:
    """A model whose weight lies in another file."""
    import onnx

    made = onnx.ModelProto.FromString(model([node("Add", ["x", "w"], ["y"])], [("x", FLOAT, [2])], [("y", FLOAT, [2])],
                                            {"w": np.ones(2, np.float32)}))
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "4"), ("length", str(size))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def test_external_data_are_read_from_the_folder_of_the_model(tmp_path: Path) -> None:
    path = external(tmp_path, "data/w.bin")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "w.bin").write_bytes(b"skip" + np.array([2, 3], np.float32).tobytes())
    made = irscope.run(str(path), inputs={"x": np.array([1, 1], np.float32)})
    assert made.outputs[0].tolist() == [3, 4]


@pytest.mark.parametrize(("location", "size", "message"), [
    ("../w.bin", 8, "outside the folder"), ("/etc/hostname", 8, "outside the folder"), ("a/../../w.bin", 8, "outside the folder"),
    ("link", 8, "outside the folder"), ("..\\w.bin", 8, "outside the folder"), ("gone.bin", 8, "does not exist"),
    ("short.bin", 8, "has 5 bytes"), ("short.bin", 1 << 40, "takes 8"), ("", 8, "outside the folder"),
])
def test_external_data_elsewhere_are_refused(tmp_path: Path, location: str, size: int, message: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(bytes(12))
    (folder / "short.bin").write_bytes(bytes(5))
    (folder / "link").symlink_to(tmp_path / "w.bin")
    path = external(folder, location, size)
    assert irscope.load(str(path)).ok
    with pytest.raises(UserError, match=message):
        irscope.run(str(path), inputs={"x": np.zeros(2, np.float32)})


# ---------------------------------------------------------------------- the table

PAGE = Path(__file__).resolve().parents[2] / "docs" / "formats" / "onnx.md"


def coverage() -> str:
    """The operators by how they are computed, as the page lists them."""
    kinds: dict[str, list[str]] = {"expanded": [], "by the standard's function": [], "refused by name": [], "with bodies": []}
    kinds["with bodies"] = ["If", "Loop", "Scan", "SequenceMap"]
    for name in names():
        operator = declared(name)
        assert operator is not None
        kind = "by the standard's function" if operator.is_function else "expanded" if operator.build is not None else "refused by name"
        kinds[kind].append(name)
    return "\n".join(f"| {kind} | {len(found)} | {', '.join(found)} |" for kind, found in kinds.items())


def test_the_page_lists_every_operator() -> None:
    assert coverage() in PAGE.read_text(encoding="utf-8"), f"put this into {PAGE.name}:\n{coverage()}"



def test_every_operator_of_the_standard_is_declared() -> None:
    defs = pytest.importorskip("onnx.defs")
    standard = {s.name for s in defs.get_all_schemas() if s.domain == ""} - {"If", "Loop", "Scan", "SequenceMap"}
    assert standard - set(names()) == set()


def test_declared_attributes_are_those_of_the_standard() -> None:
    defs = pytest.importorskip("onnx.defs")
    known: dict[str, set[str]] = defaultdict(set)
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "":
            known[schema.name].update(schema.attributes)
    for name in names():
        if "." in name or not defs.has(name):
            continue
        operator = declared(name)
        assert operator is not None
        newest = set(defs.get_schema(name).attributes)
        stated = {a.name for a in operator.attributes}
        assert newest <= stated, name
        assert stated <= known[name] | {"axis", "broadcast"}, name


def test_a_model_is_printed_in_the_text_form_of_onnx() -> None:
    module = read(model([node("Gemm", ["x", "w"], ["y"], transB=1)], [("x", FLOAT, ["n", 2])], [("y", FLOAT, ["n", 3])],
                        {"w": np.ones((3, 2), np.float32)})).module()
    assert format_named("onnx").print_module(module) == (
        '<ir_version: 10, opset_import: ["" : 21]>\ng (float[n,2] x) => (float[n,3] y)\n  <float[3,2] w>\n{\n'
        "  y = Gemm <transB = 1> (x, w)\n}\n")


def test_operators_of_onnx_may_be_the_first_that_are_imported() -> None:
    code = "from irscope.formats.onnx.operators import names; names(); import irscope.formats.torchscript.structure"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).stderr == b""


# ---------------------------------------------------------------------- numbers and names that no exporter writes


def changed(data: bytes, change: Callable[[Any], object]) -> bytes:
    made = ModelProto()
    made.ParseFromString(data)
    change(made)
    return bytes(made.SerializeToString())


CLIPPED = model([node("Clip", ["x", "", "high"], ["y"])], [("x", FLOAT, (2,)), ("low", FLOAT, ())], [("y", FLOAT, None)], {"high": np.float32(1)})


@pytest.mark.parametrize(("change", "message"), [
    (lambda m: setattr(m.opset_import[0], "version", 1 << 40), "ai.onnx is 1099511627776"),
    (lambda m: setattr(m.opset_import[0], "version", -1), "ai.onnx is -1"),
    (lambda m: setattr(m.graph.input[1], "name", ""), "an input or a constant of g has no name"),
    (lambda m: setattr(m.graph.initializer[0], "name", ""), "an input or a constant of g has no name"),
    (lambda m: m.graph.initializer[0].dims.extend([1] * 65), "has 65 dimensions: arrays have at most 64"),
    (lambda m: m.graph.initializer[0].MergeFrom(TensorProto(dims=[0, 1 << 62, 1 << 62])), "has sizes whose product is no 64-bit number"),
    (lambda m: m.graph.initializer.append(TensorProto(name="s", dims=[-1, -1], data_type=8, string_data=[b"a"])), "has a negative size"),
], ids=["version beyond 32 bits", "negative version", "input without a name", "constant without a name", "65 dimensions", "zero times huge",
        "negative sizes of strings"])
def test_numbers_and_names_that_no_exporter_writes_are_findings(change: Callable[[Any], object], message: str) -> None:
    reading = read(changed(CLIPPED, change))
    assert not reading.ok
    assert any(message in found.message for found in reading.findings), [found.message for found in reading.findings]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory of a process is read from /proc")
def test_shape_inference_takes_bounded_memory_and_time() -> None:
    data = model([node("Split", ["x"], ["y", "z"], num_outputs=1 << 28)], [("x", FLOAT, (2, 3))], [("y", FLOAT, None), ("z", FLOAT, None)])
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    reading = read(data)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "refuses the model: std::bad_alloc" in reading.findings[0].message
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 3
