"""HLO protos: the same graph as the text of the module, in every form of the file, and no damage that ends in an exception."""
from __future__ import annotations

import gzip
import random
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

import irscope
from irscope.api import DiffOptions, RunOptions
from irscope.fleet.buffers import parse_buffer_assignment
from irscope.fleet.dump_folder import read_folder
from irscope.fleet.files import find_files
from irscope.formats import hlo_pb
from irscope.formats.hlo_pb.literals import values_of
from irscope.formats.hlo_pb.record import Malformed, Record
from irscope.formats.hlo_pb.schema import message
from irscope.formats.hlo_pb.text_proto import decode_text
from irscope.formats.hlo_pb.wire import decode
from irscope.graph import Reading
from irscope.source import SourceText, UserError
from irscope.source.budget import limits
from tests.conftest import Cli

DATA = Path(__file__).parents[1] / "data" / "hlo_pb"
NAME = "module_0004.jit_step"
STAGES = ("before_optimizations", "cpu_after_optimizations")


def binary(stage: str) -> bytes:
    """A proto that jaxlib wrote."""
    return gzip.decompress((DATA / f"{NAME}.{stage}.pb.gz").read_bytes())


def encoded(record: Record) -> bytes:
    """The binary form of a message that was read from text."""
    out = bytearray()
    for name, values in record.values.items():
        field = record.message.names[name]
        for value in values:
            if isinstance(value, Record | bytes):
                data = encoded(value) if isinstance(value, Record) else value
                out += _varint(field.number << 3 | 2) + _varint(len(data)) + data
            elif field.kind in ("float", "double"):
                out += _varint(field.number << 3 | (5 if field.kind == "float" else 1)) + struct.pack("<f" if field.kind == "float" else "<d", value)
            else:
                out += _varint(field.number << 3) + _varint(int(value) & (1 << 64) - 1)
    return bytes(out)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


SHAPE = "shape {{ element_type: {} {} layout {{ {} }} }}"


def shape(kind: str, *dims: int) -> str:
    sizes = " ".join(f"dimensions: {d}" for d in dims)
    return SHAPE.format(kind, sizes, " ".join(f"minor_to_major: {i}" for i in reversed(range(len(dims)))))


def module(*instructions: str) -> str:
    """A module of one computation; the last instruction is the root."""
    body = "\n".join(f"instructions {{ id: {i} {text} }}" for i, text in enumerate(instructions, 1))
    return f'name: "m" entry_computation_name: "main"\ncomputations {{ name: "main" id: 7 root_id: {len(instructions)}\n{body} }}\nentry_computation_id: 7'


def read_text(text: str) -> Reading:
    return hlo_pb.read(SourceText("m.txtpb", text))


X = f'name: "x" opcode: "parameter" {shape("F32", 4, 6)}'


@pytest.mark.parametrize("stage", STAGES)
def test_a_proto_is_the_graph_of_its_text(stage: str) -> None:
    proto, text = DATA / f"{NAME}.{stage}.hlo.pb.gz", DATA / f"{NAME}.{stage}.txt"
    result = irscope.diff(proto, text, DiffOptions())
    assert result.same, result.as_text()
    a, b = irscope.load(proto), irscope.load(text)
    assert a.format == "hlo-pb" and a.ok and not a.findings and a.module().name == "jit_step" and a.module().dialect is b.module().dialect
    assert a.module().graphs.keys() == b.module().graphs.keys()
    for mine, theirs in ((graph, b.module().graphs[name]) for name, graph in a.module().graphs.items()):
        assert [n.name for n in mine.nodes if not n.synthetic] == [n.name for n in theirs.nodes if not n.synthetic]
        places = [(a.module().scope(x), a.module().call_stack(x)) for x in mine.nodes if not x.synthetic]
        assert places == [(b.module().scope(x), b.module().call_stack(x)) for x in theirs.nodes if not x.synthetic]


def test_the_buffers_are_those_of_the_report() -> None:
    reading = irscope.load(DATA / f"{NAME}.cpu_after_optimizations.hlo.pb.gz")
    report = parse_buffer_assignment((DATA / f"{NAME}.cpu_after_optimizations-buffer-assignment.txt").read_text())
    assert reading.buffers is not None
    assert [(a.number, a.size, a.sort) for a in reading.buffers.allocations] == [(a.number, a.size, a.sort) for a in report.allocations]
    assert [sorted(a.values) for a in reading.buffers.allocations] == [sorted(a.values) for a in report.allocations]


def test_a_snapshot_runs_on_its_arguments() -> None:
    path = DATA / f"{NAME}.snapshot.pb.gz"
    arguments = irscope.load(path).arguments
    assert [a.tolist() for a in arguments] == [[[0, 1, 2], [3, 4, 5]], 3]
    outputs = irscope.run(path, RunOptions(check=True)).outputs
    given = irscope.run(path, RunOptions(), inputs={"arg0": arguments[0], "arg1": arguments[1]}).outputs
    other = irscope.run(path, RunOptions(), inputs={"arg1": np.array(0, np.int32)}).outputs
    assert outputs[0].tobytes() == given[0].tobytes() != other[0].tobytes()
    assert outputs[1].tolist() == [[1, -2, 3]]


@pytest.mark.parametrize("form", ["module", "text", "unoptimized"])
def test_other_forms_hold_the_same_graph(form: str) -> None:
    whole = hlo_pb.read_bytes(binary("before_optimizations.hlo"), "a")
    text = read_text("hlo_module {\n" + module(X, 'name: "n" opcode: "negate" operand_ids: 1 ' + shape("F32", 4, 6)) + "\n}")
    bare = decode_text(module(X, 'name: "n" opcode: "negate" operand_ids: 1 ' + shape("F32", 4, 6)), message("HloModuleProto"))
    if form == "module":
        data = encoded(bare)
        assert hlo_pb.sniff_bytes(data) == 1
        assert irscope.load(data).source.text == text.source.text and whole.ok
    elif form == "unoptimized":
        snapshot = Record(message("HloUnoptimizedSnapshot"))
        inputs = f'arguments {{ {shape("F32", 2)} f32s: 1.5 f32s: 2 }}'
        snapshot.values = {"hlo_module": [bare], "partitions": [decode_text(inputs, message("HloInputs"))]}
        reading = irscope.load(encoded(snapshot))
        assert reading.arguments[0].tolist() == [1.5, 2] and reading.module().entry == "main"
    else:
        assert text.ok and [n.op.name for n in text.module().main().nodes] == ["parameter", "negate"]


KERNEL = 'name: "k" opcode: "parameter" parameter_number: 1 ' + shape("F32", 2, 2, 1, 3)
IMAGE = 'name: "i" opcode: "parameter" ' + shape("F32", 1, 4, 6, 1)
WINDOW = "window {{ dimensions {{ size: 2 stride: {} padding_low: 0 padding_high: 1 window_dilation: 1 base_dilation: 1 }} " \
         "dimensions {{ size: 2 stride: 2 window_dilation: 1 base_dilation: 1 window_reversal: {} }} }}"
NUMBERS = """convolution_dimension_numbers { kernel_input_feature_dimension: 2 kernel_output_feature_dimension: 3
  kernel_spatial_dimensions: 0 kernel_spatial_dimensions: 1 input_feature_dimension: 3 output_feature_dimension: 3
  input_spatial_dimensions: 1 input_spatial_dimensions: 2 output_spatial_dimensions: 1 output_spatial_dimensions: 2 }"""


@pytest.mark.parametrize("instruction, line", [
    ('opcode: "negate" operand_ids: 1 metadata { op_name: "a\\"b" source_file: "f.py" source_line: 3 }', 'negate(%x), metadata={op_name="a\\"b" source_file="f.py" source_line=3}'),
    ('opcode: "compare" operand_ids: 1 operand_ids: 1 comparison_direction: "LT" comparison_type: "FLOAT"', "compare(%x, %x), direction=LT"),
    ('opcode: "compare" operand_ids: [1, 1] comparison_direction: "LT" comparison_type: "TOTALORDER"', "compare(%x, %x), direction=LT, type=TOTALORDER"),
    ('opcode: "slice" operand_ids: 1 slice_dimensions { limit: 4 stride: 1 } slice_dimensions { start: 1 limit: 6 stride: 2 }', "slice(%x), slice={[0:4], [1:6:2]}"),
    ('opcode: "pad" operand_ids: [1, 1] padding_config { dimensions { edge_padding_low: -1 edge_padding_high: 2 } dimensions { interior_padding: 1 } }',
     "pad(%x, %x), padding=-1_2_0x0_0_1"),
    ('opcode: "transpose" operand_ids: 1 dimensions: 1 dimensions: 0', "transpose(%x), dimensions={1,0}"),
    ('opcode: "broadcast" operand_ids: 1', "broadcast(%x), dimensions={}"),
    ('opcode: "iota" dimensions: 1', "iota(), iota_dimension=1"),
    ('opcode: "dot" operand_ids: 1 operand_ids: 1 dot_dimension_numbers { lhs_contracting_dimensions: 1 rhs_contracting_dimensions: 1 } '
     "precision_config { operand_precision: HIGHEST operand_precision: DEFAULT algorithm: ALG_DOT_BF16_BF16_F32_X3 }",
     "dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={1}, operand_precision={highest,default}, algorithm=dot_bf16_bf16_f32_x3"),
    ('opcode: "fft" operand_ids: 1 fft_type: RFFT fft_length: 6', "fft(%x), fft_type=RFFT, fft_length={6}"),
    ('opcode: "rng" distribution: RNG_UNIFORM', "rng(), distribution=rng_uniform"),
    ('opcode: "rng-bit-generator" operand_ids: 1 rng_algorithm: RNG_PHILOX', "rng-bit-generator(%x), algorithm=rng_philox"),
    ('opcode: "reduce-precision" operand_ids: 1 exponent_bits: 8 mantissa_bits: 7', "reduce-precision(%x), exponent_bits=8, mantissa_bits=7"),
    ('opcode: "triangular-solve" operand_ids: [1, 1] triangular_solve_options { left_side: true lower: true transpose_a: ADJOINT }',
     "triangular-solve(%x, %x), left_side=true, lower=true, transpose_a=ADJOINT"),
    ('opcode: "cholesky" operand_ids: 1 cholesky_options { lower: true }', "cholesky(%x), lower=true"),
    ('opcode: "custom-call" operand_ids: 1 custom_call_target: "t" custom_call_api_version: API_VERSION_TYPED_FFI '
     'custom_call_has_side_effect: true backend_config: "{\\"a\\": 1}" output_operand_aliasing { operand_index: 0 }',
     'custom-call(%x), custom_call_target="t", custom_call_has_side_effect=true, output_to_operand_aliasing={{}: (0, {})}, '
     'api_version=API_VERSION_TYPED_FFI, backend_config={"a": 1}'),
    ('opcode: "batch-norm-training" operand_ids: [1, 1, 1] epsilon: 0.001 feature_index: 1', "batch-norm-training(%x, %x, %x), epsilon=0.001, feature_index=1"),
    ('opcode: "all-gather" operand_ids: 1 dimensions: 0 channel_id: 3 use_global_device_ids: true '
     "iota_collective_device_list { num_replica_groups: 2 num_devices_per_group: 4 iota_reshape_dims: [4, 2] iota_transpose_perm: [1, 0] }",
     "all-gather(%x), dimensions={0}, replica_groups=[2,4]<=[4,2]T(1,0), channel_id=3, use_global_device_ids=true"),
    ('opcode: "all-gather" operand_ids: 1 dimensions: 0 collective_device_list { replica_groups { replica_ids: [0, 1] } replica_groups { replica_ids: [2, 3] } }',
     "all-gather(%x), dimensions={0}, replica_groups={{0,1},{2,3}}"),
    ('opcode: "all-gather" operand_ids: 1 dimensions: 0 mesh_axes_replica_group_list { mesh { axes { name: "x" size: 4 } axes { name: "y" size: 2 } } '
     "axes { mesh_axis_index: 0 sub_axis_info { pre_size: 2 size: 2 } } axes { mesh_axis_index: 1 } }",
     "all-gather(%x), dimensions={0}, replica_groups=mesh['x'=4,'y'=2] {'x':(2)2, 'y'}"),
    ('opcode: "collective-permute" operand_ids: 1 source_target_pairs { target: 1 } source_target_pairs { source: 1 }',
     "collective-permute(%x), source_target_pairs={{0,1},{1,0}}"),
    ('opcode: "negate" operand_ids: 1 sharding { type: OTHER tile_assignment_dimensions: [2, 1, 4] iota_reshape_dims: 8 iota_transpose_perm: 0 '
     "replicate_on_last_tile_dim: true }", "negate(%x), sharding={devices=[2,1,4]<=[8] last_tile_dim_replicate}"),
    ('opcode: "negate" operand_ids: 1 sharding { type: MAXIMAL tile_assignment_devices: 3 }', "negate(%x), sharding={maximal device=3}"),
    ('opcode: "negate" operand_ids: 1 sharding { named_sharding { mesh { axes { name: "x" size: 8 } } dim_shardings { axes { } is_closed: true } dim_shardings { } } }',
     "negate(%x), sharding={mesh['x'=8], [{'x'}, {?}]}"),
    ('opcode: "negate" operand_ids: 1 frontend_attributes { map { key: "k" value: "v w" } map { key: "a" value: "{\\"b\\":1}" } }',
     'negate(%x), frontend_attributes={a={"b":1},k="v w"}'),
    ('opcode: "tanh" operand_ids: 1 result_accuracy { mode: HIGHEST }', "tanh(%x), result_accuracy={mode=highest}"),
    ('opcode: "negate" operand_ids: 1 control_predecessor_ids: 1', "negate(%x), control-predecessors={%x}"),
])
def test_attributes_are_those_of_the_text(instruction: str, line: str) -> None:
    for text in (module(X, f'name: "y" {instruction} {shape("F32", 4, 6)}'),):
        reading = read_text(text)
        assert f"  ROOT %y = f32[4,6]{{1,0}} {line}\n" in reading.source.text
        assert reading.ok, [finding.message for finding in reading.findings]
        again = irscope.load(encoded(decode_text(text, message("HloModuleProto"))))
        assert again.source.text == reading.source.text


def test_convolutions_have_windows_and_labels() -> None:
    y = f'name: "y" opcode: "convolution" operand_ids: [1, 2] {WINDOW.format(1, "true")} {NUMBERS} {shape("F32", 1, 4, 3, 3)}'
    reading = read_text(module(IMAGE, KERNEL, y))
    assert reading.ok and ("convolution(%i, %k), dim_labels=b01f_01io->b01f, window={size=2x2 stride=1x2 pad=0_1x0_0 rhs_reversal=0x1}"
                           in reading.source.text)


@pytest.mark.parametrize("shape_text, expected", [
    ("element_type: F32 dimensions: 3 dimensions: 9223372036854775807 is_dynamic_dimension: [true, false]", "f32[<=3,9223372036854775807]"),
    ("element_type: F32 dimensions: -9223372036854775808 is_dynamic_dimension: true", "f32[?]"),
    ("element_type: BF16 dimensions: [8, 128] layout { minor_to_major: [1, 0] tiles { dimensions: [8, 128] } tiles { dimensions: [2, 1] } memory_space: 1 }",
     "bf16[8,128]{1,0:T(8,128)(2,1)S(1)}"),
    ("element_type: S4 dimensions: 2 layout { minor_to_major: 0 element_size_in_bits: 4 }", "s4[2]{0:E(4)}"),
    ("element_type: TOKEN", "token[]"),
    ("element_type: TUPLE tuple_shapes { element_type: PRED } tuple_shapes { element_type: TUPLE }", "(pred[], ())"),
])
def test_shapes(shape_text: str, expected: str) -> None:
    reading = read_text(module(f'name: "x" opcode: "parameter" shape {{ {shape_text} }}'))
    assert f"ROOT %x = {expected} parameter(0)" in reading.source.text and reading.ok


@pytest.mark.parametrize("text, expected", [
    (f'{shape("F32", 2)} f32s: 1.5 f32s: -inf', [1.5, float("-inf")]),
    (f'{shape("S32", 3)} s32s: [-1, 2, 2147483647]', [-1, 2, 2147483647]),
    (f'{shape("U64", 1)} u64s: 18446744073709551615', [18446744073709551615]),
    (f'{shape("PRED", 2)} preds: true preds: false', [True, False]),
    (f'{shape("C64", 1)} c64s: 1 c64s: -2', [1 - 2j]),
    (f'{shape("F16", 2)} f16s: "\\000<\\000\\300"', [1.0, -2.0]),
    (f'{shape("BF16", 1)} bf16s: "\\200?"', [1.0]),
    (f'{shape("S8", 2)} s8s: "\\377\\001"', [-1, 1]),
    (f'{shape("S4", 3)} s4s: "\\014\\001\\007"', [-4, 1, 7]),
    (f'{shape("S4", 3)} s4s: "\\034\\007"', [-4, 1, 7]),  # two in a byte, as in old releases
    (f'{shape("F8E4M3FN", 1)} f8e4m3fns: "8"', [1.0]),
    ("shape { element_type: F32 dimensions: [2, 3] layout { minor_to_major: [0, 1] } } f32s: [1, 2, 3, 4, 5, 6]", [[1, 3, 5], [2, 4, 6]]),
])
def test_literals_in_logical_order(text: str, expected: list[object]) -> None:
    literal = decode_text(text, message("LiteralProto"))
    _, (array,) = values_of(literal)
    assert array.tolist() == expected


@pytest.mark.parametrize("text", ["s64s: 9223372036854775808", "s64s: -9223372036854775809", "s64s: 99999999999999999999999", "u64s: -1"])
def test_an_integer_out_of_range_is_no_value(text: str) -> None:
    kind = "U64" if text.startswith("u") else "S64"
    reading = read_text(module(f'name: "c" opcode: "constant" {shape(kind, 1)} literal {{ {shape(kind, 1)} {text} }}'))
    assert not reading.ok and "has 0 values" in reading.findings[0].message


@pytest.mark.parametrize("given, written", [("3.4028235e38", "3.4028235e+38"), ("1e300", "inf"), ("-1e39", "-inf"), ("nan", "nan"), ("0.1", "0.1")])
def test_a_float_has_the_digits_of_32_bits(given: str, written: str) -> None:
    reading = read_text(module(X, f'name: "y" opcode: "batch-norm-training" operand_ids: [1, 1, 1] {shape("F32", 4, 6)} epsilon: {given}'))
    assert f"epsilon={written}," in reading.source.text


def test_large_constants_keep_their_values() -> None:
    values = np.arange(3000, dtype=np.float32)
    record = decode_text(module(f'name: "c" opcode: "constant" {shape("F32", 3000)} literal {{ {shape("F32", 3000)} }}'), message("HloModuleProto"))
    record.records("computations")[0].records("instructions")[0].record("literal").values["f32s"] = [values.tobytes()]
    reading = irscope.load(encoded(record))
    assert "constant({...})" in reading.source.text
    assert np.array_equal(reading.module().main().nodes[0].attrs["literal"].value(), values)
    assert np.array_equal(irscope.run(reading).outputs[0], values)


def test_a_constant_of_another_size_is_a_finding() -> None:
    reading = read_text(module(f'name: "c" opcode: "constant" {shape("F32", 3)} literal {{ {shape("F32", 9000000000)} f32s: 1 }}'))
    assert not reading.ok and [f.code for f in reading.findings] == ["HLO031"] and "too large" in reading.findings[0].message
    reading = read_text(module(f'name: "c" opcode: "constant" {shape("F32", 3)} literal {{ {shape("F32", 3)} f32s: 1 }}'))
    assert "has 1 values" in reading.findings[0].message
    for bad in ("shape { element_type: 95 dimensions: 3 }", "shape { element_type: F32 layout { minor_to_major: 0 } }", "",
                "shape { element_type: F32 dimensions: -9223372036854775808 is_dynamic_dimension: true }", "shape { element_type: TOKEN }"):
        odd = read_text(module(f'name: "c" opcode: "constant" {shape("F32", 3)} literal {{ {bad} }}'))
        assert not odd.ok and odd.findings[-1].code == "HLO031", bad
    assert reading.findings[0].place() is not None


def test_what_does_not_fit_together_is_reported() -> None:
    missing = read_text(module(X, f'name: "y" opcode: "negate" operand_ids: 99 {shape("F32", 4, 6)}'))
    assert not missing.ok and "missing.99" in missing.findings[0].message
    unknown = read_text(module(X, f'name: "y" opcode: "frobnicate" operand_ids: 1 {shape("F32", 4, 6)}'))
    assert [f.code for f in unknown.findings] == ["HLO003"]
    backwards = read_text(module(f'name: "y" opcode: "negate" operand_ids: 2 {shape("F32", 4, 6)}', X))
    assert backwards.ok and [n.name for n in backwards.module().main().nodes] == ["x", "y"]
    odd = read_text(module(X.replace('"x"', '"f32 {\\n"'), f'name: "ROOT" opcode: "negate" operand_ids: 1 {shape("F32", 4, 6)}'))
    assert odd.ok and len(odd.module().main().nodes) == 2


def test_damaged_files_are_refused_with_the_place() -> None:
    data = binary("before_optimizations.hlo")
    for cut in range(20, len(data), 61):
        with pytest.raises(UserError, match=r"cut off at byte [\d,]+ of"):
            hlo_pb.read_bytes(data[:cut], "x.pb")
    text = read_text('hlo_module { name: "m" computations { name: "c" instructions { id: 1 ')
    assert not text.ok and "ends early" in text.findings[0].message
    with pytest.raises(UserError, match="no computations"):
        hlo_pb.read_bytes(b"\n\x03\n\x01m", "x.pb")


def test_mutated_files_end_in_no_exception() -> None:
    data = gzip.decompress((DATA / f"{NAME}.snapshot.pb.gz").read_bytes())
    draw = random.Random(3)
    with limits(20.0, 1 << 30):
        for _ in range(150):
            changed = bytearray(data)
            for _ in range(draw.randint(1, 6)):
                changed[draw.randrange(len(changed))] = draw.randrange(256)
            try:
                hlo_pb.read_bytes(bytes(changed), "x.pb")
            except UserError:
                pass


def test_nested_messages_have_a_limit() -> None:
    deep = b""
    for _ in range(300):
        deep = b"\x22" + _varint(len(deep)) + deep
    shape_in = b"\x1a" + _varint(len(deep)) + deep  # an instruction's shape
    instruction = b"\x12" + _varint(len(shape_in)) + shape_in
    computation = b"\x1a" + _varint(len(instruction)) + instruction
    with pytest.raises(UserError, match="nested more than"):
        hlo_pb.read_bytes(b"\n\x01m" + computation, "x.pb")
    text = read_text('name: "m" computations { instructions { ' + "shape { tuple_shapes { " * 3000)
    assert not text.ok and "nested more than" in text.findings[0].message


def test_folders_take_protos_where_there_is_no_text(tmp_path: Path, cli: Cli) -> None:
    for file in DATA.iterdir():
        shutil.copy(file, tmp_path)
    inside = tmp_path / NAME
    inside.mkdir()
    (inside / "module.mlir").write_text("module @jit_step {\n}\n")
    (inside / "compile_options.pb").write_bytes(b"\x1a\x02\x20\x01")
    (tmp_path / f"{NAME}.before_optimizations.txt").unlink()
    found = [Path(file).name for file in find_files([str(tmp_path)]).files]
    assert found[:2] == [f"{NAME}.before_optimizations.hlo.pb.gz", f"{NAME}.cpu_after_optimizations.txt"]
    folder = read_folder(str(tmp_path))
    assert [stage.name for stage in folder.modules[0].stages] == list(STAGES)
    assert set(folder.modules[0].inside) == {"module.mlir", "compile_options.pb"} and "buffer-assignment" in folder.modules[0].reports
    shown = cli("show", tmp_path)
    assert shown.exit_code == 0 and "as the framework lowered it" in shown.stdout and "59 → 76" in shown.stdout
    assert cli("lint", DATA / f"{NAME}.before_optimizations.hlo.pb.gz", "--isolated").exit_code in (0, 1)


def test_memory_of_a_proto_is_shown(cli: Cli) -> None:
    shown = cli("show", DATA / f"{NAME}.snapshot.pb.gz").stdout
    assert "HLO module jit_step" in shown
    (proto,) = (DATA / f"{NAME}.cpu_after_optimizations.hlo.pb.gz",)
    reading = irscope.load(gzip.decompress(proto.read_bytes()))
    assert reading.buffers is not None and reading.buffers.total > 0


def test_packed_numbers_are_whole() -> None:
    literal = decode(b"\x42\x05\0\0\x80\x3f\0", message("LiteralProto"))
    with pytest.raises(Malformed, match="f32s has 5 bytes"):
        literal.array("f32s")
