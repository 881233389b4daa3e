"""StableHLO texts and HLO protos whose sizes, lists and locations fit nothing end with a fault of theirs, in time that grows with them."""
from __future__ import annotations

from random import Random

import pytest

import irscope
from irscope.expand.specialise import specialised
from irscope.formats.hlo_pb import read_bytes
from irscope.formats.hlo_pb.devices import sharding_text
from irscope.formats.hlo_pb.schema import message
from irscope.formats.hlo_pb.wire import decode
from irscope.formats.stablehlo.lexer import BRACKETS, CLOSING, Closings, closing
from irscope.formats.stablehlo.provenance import StablehloProvenance
from tests.effort import calls_in


@pytest.mark.parametrize("end", ["", "}\n", "})\n", "} ]\n"])
def test_regions_of_operations_that_cannot_be_read_are_matched_once(end: str) -> None:
    def text(n: int) -> str:
        return "func.func @main(%p: tensor<i1>) {\n" + '"stablehlo.if"(%p) ({\n' * n + end * n

    small, large = (calls_in(irscope.load, text(n), format="stablehlo") for n in (250, 1000))
    assert large < 6 * small


def test_brackets_of_a_text_are_matched_as_one_by_one() -> None:
    random = Random(5)
    for _ in range(500):
        pieces = random.choices("(){}[]", k=random.randrange(1, 12)) + random.choices(("<", ">", "->", '"a}"', '"', "// )\n"), k=random.randrange(4))
        random.shuffle(pieces)
        text = " ".join(pieces)
        places = [m.start() for m in BRACKETS.finditer(text) if m[0] in CLOSING]
        random.shuffle(places)
        closings = Closings(text)
        assert [closings.after(at) for at in places] == [closing(text, at, len(text)) for at in places], text


def varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def part(number: int, data: bytes | int) -> bytes:
    return varint(number << 3) + varint(data) if isinstance(data, int) else varint(number << 3 | 2) + varint(len(data)) + data


def constant_of(sizes: tuple[int, ...]) -> bytes:
    """An HloModuleProto with one constant of f32."""
    shape = part(2, 11) + part(3, b"".join(map(varint, sizes)))
    literal = part(1, shape) + (part(8, b"\0\0\0\0") if 0 not in sizes else b"")
    constant = part(1, b"c") + part(2, b"constant") + part(3, shape) + part(8, literal) + part(35, 1)
    return part(1, b"m") + part(2, b"main") + part(3, part(1, b"main") + part(2, constant) + part(5, 1) + part(6, 1)) + part(6, 1)


@pytest.mark.parametrize(("sizes", "why"), [((0, 1 << 40, 1 << 40), "is too large"), ((1,) * 70, "has 70 dimensions"),
                                            ((0,) * 70, "has 70 dimensions")], ids=["empty", "ones", "zeros"])
def test_sizes_that_numpy_refuses_are_a_fault_of_the_proto(sizes: tuple[int, ...], why: str) -> None:
    reading = read_bytes(constant_of(sizes), "m.pb")
    assert any(why in finding.message for finding in reading.findings)


def test_the_axes_of_a_mesh_are_read_once_for_all_dimensions() -> None:
    def sharding(n: int) -> bytes:
        return part(14, part(2, part(1, b"") * n) + part(3, b"") * n)
    small, large = (calls_in(sharding_text, decode(sharding(n), message("OpSharding"))) for n in (40, 400))
    assert large < 15 * small


def test_a_location_that_names_itself_is_read_once() -> None:
    text = "#loc1 = loc(fused[" + '"x", ' * 200 + "#loc1])\n%0 = f.f loc(#loc1)"
    at = text.index("%0")
    provenance = StablehloProvenance(text, {"#loc1": text.index("loc(")}, (), {})
    first, second = (calls_in(provenance.scope, at) for _ in range(2))
    assert provenance.scope(at) == "x"
    assert second < first < 20_000


def program(arguments: str, body: str, result: str = "tensor<?x?xf32>") -> str:
    return f"module {{\n  func.func public @main({arguments}) -> {result} {{\n{body}    return %r : {result}\n  }}\n}}\n"


def constants(*values: str) -> str:
    return "".join(f"    %{name} = stablehlo.constant dense<{value}> : tensor<{value.count(',') + 1}xi64>\n"
                   for name, value in zip("slt", values, strict=False))


DYNAMIC = {
    "slice": (program("%a: tensor<4x4xf32>", constants("[0]", "[2, 2]", "[1, 1]") +
              "    %r = stablehlo.real_dynamic_slice %a, %s, %l, %t : (tensor<4x4xf32>, tensor<1xi64>, tensor<2xi64>, tensor<2xi64>)"
              " -> tensor<?x?xf32>\n"), "needs 2 numbers"),
    "pad": (program("%a: tensor<4x4xf32>, %z: tensor<f32>", constants("[0]", "[2, 2]", "[1, 1]") +
            "    %r = stablehlo.dynamic_pad %a, %z, %s, %l, %t : (tensor<4x4xf32>, tensor<f32>, tensor<1xi64>, tensor<2xi64>, tensor<2xi64>)"
            " -> tensor<?x?xf32>\n"), "needs 2 numbers"),
    "broadcast": (program("%a: tensor<4x4xf32>", constants("[4]") + "    %r = stablehlo.dynamic_broadcast_in_dim %a, %s, dims = [0, 1] :"
                  " (tensor<4x4xf32>, tensor<1xi64>) -> tensor<?x?xf32>\n"), "of a broadcast do not fit"),
    "convolution": (program("%a: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x4xf32>", constants("[1, 1, 1]") +
                    '    %r = "stablehlo.dynamic_conv"(%a, %k, %s) {dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->'
                    '[b, 0, 1, f]>} : (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>, tensor<3xi64>) -> tensor<?x?x?x?xf32>\n',
                    "tensor<?x?x?x?xf32>"), "needs 4 numbers of padding"),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_operands_with_another_number_of_sizes_are_refused(name: str) -> None:
    text, why = DYNAMIC[name]
    with pytest.raises(irscope.UserError, match=why):
        specialised(irscope.load(text, format="stablehlo").module(), {})


def test_a_function_without_body_does_not_compile() -> None:
    text = "module {\n  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32>\n}\n"
    with pytest.raises(irscope.UserError):
        irscope.compile(irscope.load(text, format="stablehlo"))


@pytest.mark.parametrize("text", [
    program("%a: tensor<?x2xf32>", '    %r = "stablehlo.all_to_all"(%a) {split_dimension = 0 : i64, concat_dimension = 1 : i64,'
            " split_count = 2 : i64} : (tensor<?x2xf32>) -> tensor<2xf32>\n", "tensor<2xf32>"),
    program("%a: tensor<?x2xf32>, %i: tensor<?xi32>", '    %r = "stablehlo.torch_index_select"(%a, %i) {dim = 1 : i64, batch_dims = 1 : i64} :'
            " (tensor<?x2xf32>, tensor<?xi32>) -> tensor<2xf32>\n", "tensor<2xf32>"),
    program("%a: tensor<1x8x8x3xf32>, %k: tensor<?x3x3x4xf32>", '    %r = "stablehlo.convolution"(%a, %k) {dimension_numbers ='
            " #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>} : (tensor<1x8x8x3xf32>, tensor<?x3x3x4xf32>)"
            " -> tensor<1x8x8x4xf32>\n", "tensor<1x8x8x4xf32>")], ids=["all_to_all", "torch_index_select", "convolution"])
def test_operations_whose_sizes_are_open_are_unsupported(text: str) -> None:
    assert any("sizes that are not known" in finding.message for finding in irscope.load(text, format="stablehlo").findings)


def test_groups_without_devices_are_not_counted_out() -> None:
    text = program("%a: tensor<4xf32>", '    %r = "stablehlo.collective_broadcast"(%a) {replica_groups = dense<> :'
                   " tensor<9000000000000x0xi64>} : (tensor<4xf32>) -> tensor<4xf32>\n", "tensor<4xf32>")
    assert any("rows is too long" in finding.message for finding in irscope.load(text, format="stablehlo").findings)
