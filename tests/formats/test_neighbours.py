"""What people hand in by mistake: each is named, and answered with the line that gives a readable dump."""
from __future__ import annotations

import gzip
import io
import zipfile

import pytest

from irscope.formats import FORMATS
from irscope.formats.detect import decode, read
from irscope.source import UserError


def zipped(*names: str) -> bytes:
    """A zip archive with members of these names."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, b"x")
    return buffer.getvalue()


BINARY = {
    "torch.jit.save": (zipped("m/data.pkl", "m/code/__torch__.py"), "a TorchScript archive", "torch.jit.load('model.bin'"),
    "torch.save": (zipped("m/data.pkl", "m/data/0"), "a torch.save archive", "torch.export.export"),
    "torch.export": (zipped("m/serialized_exported_program.json"), "a torch.export archive", "torch.export.load('model.bin')"),
    "keras": (zipped("config.json", "metadata.json", "model.weights.h5"), "a .keras archive", "keras.saving.load_model('model.bin')"),
    "npz": (zipped("arg0.npy"), "a numpy .npz archive", "--inputs"),
    "other zip": (zipped("readme.md"), "a zip archive", "unpack"),
    "cut zip": (zipped("m/data.pkl")[:40], "a damaged zip archive", "copy it again"),
    "onnx": (b"\x08\x08\x12\x07pytorch\x1a\x062.13.0:\x80\x01\n\x0fB\x04Gemm", "an ONNX model", "export or copy it again"),
    "hlo proto": (b"\n\x05jit_f\x12\x06main.1\x1a\x40\x0a\x03x.1\x12\x09parameter\x1a\x06\x10\x0b\x1a\x02\x02\x03", "an HLO proto", "--xla_dump_hlo_as_text"),
    "graphdef": (b"\n\x40\n\x01x\x12\x0bPlaceholder*\x0b\n\x05dtype\x12\x020\x01\x00", "a TensorFlow GraphDef", "experimental_get_compiler_ir"),
    "tflite": (b"\x1c\0\0\0TFL3\x14\0\x20\0", "a TensorFlow Lite model", "experimental_get_compiler_ir"),
    "safetensors": (b"\x40\0\0\0\0\0\0\0" + b'{"fc1.weight":{"dtype":"F32"}}', "a safetensors file", "--weights"),
    "pickle": (b"\x80\x05\x95\x0c\0\0\0\0\0\0\0}\x94\x8c\x01a\x94K\x01s.", "a Python pickle", "opens none"),
    "npy": (b"\x93NUMPY\x01\0v\0{'descr': '<f4'}", "a numpy .npy array", "--inputs"),
    "hdf5": (b"\x89HDF\r\n\x1a\n\0\0", "an HDF5 file", "as_text(dialect='hlo')"),
    "png": (b"\x89PNG\r\n\x1a\n\0\0", "a picture", "the dump that it was drawn from"),
    "elf": (b"\x7fELF\x02\x01\x01\0", "compiled machine code", "--xla_dump_hlo_as_text"),
    "bitcode": (b"BC\xc0\xde5\x14\0\0", "LLVM bitcode", "--xla_dump_hlo_as_text"),
    "mlir bytecode": (b"ML\xefR\x0dStableHLO_v1\0", "MLIR bytecode", "--from stablehlo"),
    "zstd": (b"\x28\xb5\x2f\xfd\x04\0", "a zstd archive", "zstd -d 'model.bin'"),
    "unknown": (bytes(range(256)) * 4, "binary, not a text", "text that a compiler prints"),
}

TEXT = {
    "vhlo": ('func.func @main(%arg0: tensor<2xf32>) {\n    %0 = "vhlo.add_v1"(%arg0, %arg1)', "VHLO", "--vhlo-legalize-to-stablehlo"),
    "mlir": ("func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = linalg.generic", "MLIR text", "as_text(dialect='hlo')"),
    "fx lines": ("    %y : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})\n", "a part of a torch.fx", "torch.export.export"),
    "fx table": ("opcode         name    target    args    kwargs\n-------------  ------\nplaceholder    x       x", "a torch.fx graph as a table", "print(graph_module.graph)"),
    "torchscript code": ("def forward(self,\n    x: Tensor) -> Tensor:\n  fc2 = self.fc2\n", "the Python view of a TorchScript", "inlined_graph"),
    "jaxpr": ("{ lambda ; a:f32[2,3] b:f32[3,4]. let\n    c:f32[2,4] = dot_general a b\n  in (c,) }", "a jaxpr", "as_text(dialect='hlo')"),
    "relax": ("# from tvm.script import ir as I\n@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((1, 784))):\n", "TVMScript", "Relay"),
    "onnx print": ("graph main_graph (\n  %onnx::Gemm_0[FLOAT, 2x3]\n) {\n  %y = Gemm(%x)\n}", "a text print of an ONNX", "give model.onnx itself"),
    "onnx text": ("<\n   ir_version: 8,\n   opset_import: [\"\" : 17]\n>\nmain_graph (float[2,3] x) {", "a text print of an ONNX", "give model.onnx itself"),
    "hlo pbtxt": ('    }\n  }\ncomputations {\n  name: "main"\n', "a part of an HLO proto", "--xla_dump_hlo_as_text"),
    "ttir": ("module {\n  tt.func public @add_kernel(%arg0: !tt.ptr<f32>) {\n    %0 = tt.get_program_id x : i32\n", "Triton's IR", "TORCH_LOGS"),
    "ttgir": ('#blocked = #ttg.blocked<{sizePerThread = [4]}>\nmodule attributes {"ttg.num-warps" = 4 : i32} {\n', "Triton's IR", "--xla_dump_to"),
    "iree flow": ("module {\n  util.func public @main(%arg0: !hal.buffer_view) {\n    %0 = hal.tensor.import %arg0\n", "IREE's IR", "iree-compile"),
    "iree stream": ("  stream.executable private @main_dispatch_0 {\n", "IREE's IR", "as_text(dialect='hlo')"),
    "graphdef pbtxt": ('node {\n  name: "x"\n  op: "Placeholder"\n}', "a TensorFlow GraphDef", "TF_DUMP_GRAPH_PREFIX"),
    "old flag": ("Unknown flag in XLA_FLAGS: --xla_generate_hlo_text_to=/d", "XLA's complaint", "--xla_dump_hlo_as_text"),
    "dot": ("digraph G {\n  a -> b\n}", "a graphviz .dot file", "drawn from"),
    "html": ("<!DOCTYPE html>\n<html><body>", "HTML", "the dump itself"),
    "json": ('{"nodes": [{"op": "null"}]}', "JSON", "the compiler printed"),
    "python": ("#!/usr/bin/env python\nimport jax\nprint(jax.jit(f).lower(x).as_text())\n", "Python source", "what the program prints"),
    "traceback": ("Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\nValueError: no", "a Python traceback", "mend that first"),
    "nn.Module": ("Sequential(\n  (0): Linear(in_features=3, out_features=4, bias=True)\n  (1): ReLU()\n)", "the print of a torch.nn.Module", "torch.export.export"),
    "keras summary": ('Model: "sequential"\n Layer (type)      Output Shape     Param #\n', "a Keras model.summary()", "as_text(dialect='hlo')"),
    "buffer assignment": ("BufferAssignment:\nallocation 0: size 12, parameter 0\n", "a report that XLA writes", "after_optimizations.txt"),
    "llvm": ("; ModuleID = '__compute_module'\nsource_filename = \"x\"\ndefine void @main() {\n", "LLVM IR", "--xla_dump_hlo_as_text"),
    "ptx": (".version 8.1\n.target sm_90\n.visible .entry fusion(", "PTX", "--xla_dump_hlo_as_text"),
    "prose": ("Dear all,\nplease find the dump attached.\n", "begins with 'Dear all,'", "--from"),
}


@pytest.mark.parametrize("kind", BINARY)
def test_binary_neighbours_are_named(kind: str) -> None:
    data, what, todo = BINARY[kind]
    with pytest.raises(UserError) as caught:
        decode(data, "model.bin")
    assert what in caught.value.message
    assert todo in caught.value.help


@pytest.mark.parametrize("kind", TEXT)
def test_text_neighbours_are_named(kind: str) -> None:
    text, what, todo = TEXT[kind]
    with pytest.raises(UserError) as caught:
        read(decode(text.encode(), "dump.txt"))
    assert what in caught.value.message and caught.value.message.startswith("dump.txt")
    assert todo in caught.value.help


UNREAD = {
    "torchscript": "graph(%self : __torch__.M,\n      %x : Float(2, 3)):\n  %3 : Tensor = aten::relu(%x)\n  return (%3)\n",
    "relay": '#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, 128), float32]) {\n  nn.relu(%x)\n}\n',
}


@pytest.mark.parametrize("name", UNREAD)
def test_our_own_formats_without_a_reader_are_told_as_such(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irscope.formats.detect.FORMATS", tuple(known for known in FORMATS if known != name))
    with pytest.raises(UserError, match="does not read yet") as caught:
        read(decode(UNREAD[name].encode(), "g.txt"))
    assert "this version reads" in caught.value.help


def test_unknown_format_name_suggests_the_near_one() -> None:
    with pytest.raises(UserError) as caught:
        read(decode(b"HloModule m", "m"), "hlos")
    assert "did you mean hlo?" in caught.value.help


@pytest.mark.parametrize(("data", "text"), [
    (b"\xef\xbb\xbfHloModule m\n", "HloModule m\n"),
    ("HloModule m\n".encode("utf-16"), "HloModule m\n"),
    (b"HloModule m // \xff\n", "HloModule m // \ufffd\n"),
])
def test_byte_order_marks_and_odd_bytes_do_not_disturb(data: bytes, text: str) -> None:
    assert decode(data, "m").text == text


def test_standard_input_is_called_by_its_name() -> None:
    with pytest.raises(UserError, match="^standard input is a zip archive"):
        decode(zipped("a.txt"), "-")


def test_a_gzip_inside_is_not_mistaken(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("gz") / "m.pt.gz"
    path.write_bytes(gzip.compress(BINARY["torch.jit.save"][0]))
    from irscope import load

    with pytest.raises(UserError, match="TorchScript archive"):
        load(path)
