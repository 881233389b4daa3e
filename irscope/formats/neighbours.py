"""Recognises files that irscope does not read but users often pass, and suggests how to obtain a readable text.

Two tables, one for bytes and one for texts; the first matching row applies. A row says what the file is and what to do instead.
"""
from __future__ import annotations

import io
import os
import re
from dataclasses import dataclass

from irscope.lazy import zipfile
from irscope.source.zips import damaged

# What XLA appends to the name of a module for each kind of file about it.
OF = re.compile(r"(?:\.hlo\.pb|\.[^./]+\.ir-(?:no|with)-opt\.ll|(?:\.top_level)?\.(?:dot|html)"
                r"|-(?:buffer-assignment(?:-values)?|live-range|memory-usage-report)\.(?:txt|pb))$")
# The beginning of a file identifies it, after a log of at most this size.
HEAD = 1 << 18

PRINT_TORCH = "print(torch.export.export(model.eval(), (example_input,)))"
PRINT_HLO = "print(jax.jit(f).lower(*args).as_text(dialect='hlo'))"
PRINT_TF = "print(tf.function(f, jit_compile=True).experimental_get_compiler_ir(*args)(stage='hlo'))"
PRINT_EITHER = f"for PyTorch:\n{PRINT_TORCH}\nfor jax:\n{PRINT_HLO}"
DUMP_HLO = "XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text' makes XLA write *.before_optimizations.txt and *after_optimizations.txt"
ARRAYS = "it contains arrays, without a graph: give the graph's text, and this file by --inputs or --weights to compile-and-run"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A kind of file that irscope does not read, by the name that users know, and what to do about it."""

    what: str
    help: str

    def help_for(self, path: str) -> str:
        """The help, with the user's path in its command; names the module text where that is in the same folder."""
        if path == "-":
            return self.help
        beside = text_beside(path)
        return f"its text is in the same folder: {beside}" if beside else self.help.replace("'FILE'", f"'{path}'")


def text_beside(path: str) -> str:
    """The path of the module text that XLA wrote beside a proto, drawing or report; empty where there is none."""
    of = OF.sub("", path)
    if of == path:
        return ""
    after = (f"{of}.{platform}_after_optimizations.txt" for platform in ("cpu", "gpu", "tpu"))
    return next((text for text in (f"{of}.txt", *after) if os.path.isfile(text)), "")


def looks_printed(data: bytes) -> bool:
    """Whether bytes may be a text: no NUL, and few unprintable characters."""
    head = data[:1 << 16]
    if b"\0" in head:
        return False
    odd = len(head.translate(None, bytes(range(32, 256)) + b"\t\n\r\f\v\x1b\b"))
    return odd * 50 <= len(head)


def in_bytes(data: bytes) -> Neighbour | None:
    """The kind of a binary file that users mistake for a dump, or None."""
    known = next((neighbour for magic, neighbour in MAGIC if data.startswith(magic)), None)
    if known is not None:
        return known
    if data[4:8] == b"TFL3":
        return TFLITE
    if data.startswith(b"PK\x03\x04"):
        return _in_zip(data)
    if len(data) > 9 and data[8:9] == b"{" and 0 < int.from_bytes(data[:8], "little") < 1 << 32 and b"\0" in data[:8]:
        return Neighbour("a safetensors file", ARRAYS)
    if data[:1] == b"\x80" and data[1:2] in b"\x02\x03\x04\x05":
        return PICKLE
    head = data[:HEAD]
    return next((neighbour for pattern, neighbour in PROTOBUFS if pattern.search(head)), None) if not looks_printed(data) else None


def in_text(text: str) -> Neighbour | None:
    """The kind of a text that users mistake for a dump, or None."""
    head = text[:HEAD]
    return next((neighbour for pattern, neighbour in TEXTS if pattern.search(head)), None)


def by_sight(text: str) -> str | None:
    """The irscope format that a text seems to have, for formats whose reader is not installed."""
    head = text[:HEAD]
    return next((name for name, pattern in SIGHT if pattern.search(head)), None)


def _in_zip(data: bytes) -> Neighbour:
    """A zip: npz, a TorchScript or torch.save archive, torch.export's .pt2, or a .keras file, by the names of its members."""
    try:
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    except damaged():
        return Neighbour("a damaged zip archive (cut off?)", "copy it again; unzip -l lists its content")
    if names and all(name.endswith(".npy") for name in names):
        return Neighbour("a numpy .npz archive", ARRAYS)
    if any("exported_program" in name for name in names):
        return Neighbour("a torch.export archive (.pt2) of an early torch", "print its program, or save it again with a newer torch:\n"
                         "python -c \"import torch; print(torch.export.load('FILE'))\" > program.txt")
    if any("/code/" in name for name in names):
        return Neighbour("a TorchScript archive (torch.jit.save)", "print its graph with one line of Python, and give that to irscope:\n"
                         "python -c \"import torch; print(torch.jit.load('FILE', map_location='cpu').inlined_graph)\" > graph.txt")
    if any(name.endswith("data.pkl") for name in names):
        return Neighbour("a torch.save archive (a state dict or a pickled module)",
                         f"it contains weights, without a graph; build the model, load it, and print its graph:\n{PRINT_TORCH}")
    if "config.json" in names and "metadata.json" in names:
        return Neighbour("a .keras archive", "load it with the jax backend and print its HLO:\n"
                         "import keras, jax; m = keras.saving.load_model('FILE'); "
                         "print(jax.jit(lambda x: m(x)).lower(example_input).as_text(dialect='hlo'))")
    return Neighbour("a zip archive", "unpack it, and give the text file of the dump in it")


ONNX = Neighbour("an ONNX model (binary protobuf)", "irscope reads whole models: this file is damaged or cut off; export or copy it again")
ONNX_PRINT = "irscope reads the binary model: give model.onnx itself; a print of it has no weights"
PICKLE = Neighbour("a Python pickle",
                   f"irscope opens none, because that runs code; print the graph instead, for PyTorch:\n{PRINT_TORCH}")
TFLITE = Neighbour("a TensorFlow Lite model", f"print the HLO of the function before its conversion:\n{PRINT_TF}")
GRAPHDEF = Neighbour("a TensorFlow GraphDef or SavedModel",
                     f"irscope reads the HLO that TensorFlow compiles it to:\n{PRINT_TF}\n{DUMP_HLO}\n"
                     "(TF_DUMP_GRAPH_PREFIX and --tf_xla_clustering_debug write GraphDefs, which are not HLO)")
HLO_PROTO = Neighbour("a part of an HLO proto", "its beginning is missing: copy it again (irscope reads HloProto, HloModuleProto and "
                      f"snapshots, binary and as text), or have the text written:\n{DUMP_HLO}")
LOW_LEVEL = ("it is code for one kernel, without the operators of the graph. Give the graph that it was compiled from: of an XLA "
             "dump *after_optimizations.txt in the same folder, else\n" + DUMP_HLO)

MAGIC: tuple[tuple[bytes, Neighbour], ...] = (
    (b"\x89HDF\r\n", Neighbour("an HDF5 file (Keras weights?)", f"it contains weights; print the graph in Python:\n{PRINT_HLO}")),
    (b"\x89PNG", PICTURE := Neighbour("a picture", "give the text of the dump that it was drawn from")),
    (b"\xff\xd8\xff", PICTURE),
    (b"%PDF", Neighbour("a PDF", "give the text that it was made from")),
    (b"\x7fELF", Neighbour("compiled machine code (ELF)", f"give the text of the graph instead:\n{DUMP_HLO}")),
    (b"BC\xc0\xde", Neighbour("LLVM bitcode", f"give the text of the graph instead:\n{DUMP_HLO}")),
    (b"ML\xefR", Neighbour("MLIR bytecode", "irscope reads it as stablehlo: leave out --from, or give --from stablehlo")),
    (b"\x93NUMPY", Neighbour("a numpy .npy array", ARRAYS)),
    (b"\x28\xb5\x2f\xfd", Neighbour("a zstd archive", "unpack it first: zstd -d 'FILE'")),
    (b"\xfd7zXZ", Neighbour("an xz archive", "unpack it first: xz -d 'FILE'")),
    (b"BZh", Neighbour("a bzip2 archive", "unpack it first: bzip2 -d 'FILE'")),
    (b"7z\xbc\xaf\x27\x1c", Neighbour("a 7z archive", "unpack it first: 7z x 'FILE'")),
    (b"SQLite format 3", Neighbour("an SQLite database (a profiler's trace?)", f"give the text of the graph instead:\n{DUMP_HLO}")),
    (b"GGUF", Neighbour("a GGUF model", "it contains weights, without a graph; print the graph in the framework that trains it")),
)

# A protobuf has no field names, but its strings are operators, each after its tag and length.
PROTOBUFS: tuple[tuple[re.Pattern[bytes], Neighbour], ...] = (
    (re.compile(rb"\x12\x09parameter|\x12\x08constant[\x1a\x0a]"), HLO_PROTO),
    (re.compile(rb"\A\x08[\x01-\x1f]\x12.[a-zA-Z]"
                rb"|\x22[\x03-\x20](?:Conv|Gemm|MatMul|Relu|Add|Mul|Constant|Identity)[\x2a\x32\x3a\x0a\x12]"), ONNX),
    (re.compile(rb"\x12\x0bPlaceholder|\x12\x05Const[\x1a\x22\x2a]|saved_model|\x12\x0eVarHandleOp"), GRAPHDEF),
)


def _line(*patterns: str) -> re.Pattern[str]:
    """Any of the patterns at the beginning of a line, after blanks."""
    return re.compile(rf"^[ \t]*(?:{'|'.join(patterns)})", re.MULTILINE)


def _start(*patterns: str) -> re.Pattern[str]:
    """Any of the patterns at the beginning of the text, after blanks."""
    return re.compile(rf"\A\s*(?:{'|'.join(patterns)})")


TEXTS: tuple[tuple[re.Pattern[str], Neighbour], ...] = (
    (_start(r"<!DOCTYPE", r"<html", r"<HTML", r"<\?xml", r"<svg"),
     Neighbour("HTML (a web page, or a drawing of a graph)", "give the text of the dump itself")),
    (_line(r'(?:%\S+(?:, %\S+)* = )?"?vhlo\.[a-z_]+'),
     Neighbour("VHLO (MLIR) text", "StableHLO is stored in this form; turn it back: stablehlo-opt --vhlo-legalize-to-stablehlo 'FILE'")),
    (_line(r"tt\.func ", r"#\w+ = #(?:ttg|triton_gpu|ttng)\.", r"module attributes \{\"?(?:ttg|triton_gpu)\.", r"%\S+ = tt\.\w+ "),
     Neighbour("a kernel in Triton's IR (TTIR or TTGIR)",
               "it is code for one kernel, without the operators of the graph. Give the graph that it belongs to; for "
               "torch.compile:\nTORCH_LOGS=output_code, or the exported program:\n" + PRINT_TORCH
               + "\nfor jax and XLA, whose fusions may be Triton kernels:\n" + DUMP_HLO)),
    (_line(r"(?:util|flow|stream|hal|vm)\.(?:func|executable|module|global)\b", r"%\S+ = (?:flow|stream|hal|iree_\w+|util)\.",
           r"#(?:hal\.|iree_)?executable_target", r"#(?:device_target|hal\.)\S* = ", r"vm\.module "),
     Neighbour("IREE's IR (flow, stream, hal or vm)",
               "give what was passed to iree-compile: for jax, HLO of the same function\n" + PRINT_HLO + "\nfor PyTorch:\n"
               + PRINT_TORCH)),
    (_line(r"module (?:@\S+ )?(?:attributes )?\{", r"(?:func|llvm|tt)\.func ", r"#\w+ = (?:affine_map|loc\()", r'"builtin\.module"',
           r"%\S+ = (?:arith|tensor|linalg|memref|scf|vector|tt|gpu|torch)\."),
     Neighbour("MLIR text", f"irscope reads StableHLO, print(jax.jit(f).lower(*args).as_text()), or HLO:\n{PRINT_HLO}")),
    (_line(r"@I\.ir_module", r"@R\.function", r"@T\.prim_func", r"from tvm\.script import", r"@tvm\.script\."),
     Neighbour("TVMScript (Relax or TIR)", "print the model where it came from instead, or from a TVM that still has Relay: print(mod)")),
    (re.compile(r"^[ \t]*opcode +name +target +args +kwargs", re.MULTILINE),
     Neighbour("a torch.fx graph as a table", "print(graph_module.graph) or graph_module.print_readable() prints it for irscope")),
    (re.compile(r"^ExportedProgram:|^[ \t]*class GraphModule\(|graph_module\.print_readable\(\)|;  \w+ = (?:\w+ = )*None"
                r"|^[ \t]*%\S+ : .*= (?:placeholder|call_function|call_module|call_method|get_attr|output)\[target=", re.MULTILINE),
     Neighbour("a part of a torch.fx or torch.export print", f"give the whole text, from its first line on:\n{PRINT_TORCH}")),
    (re.compile(r"^def \w+\(self,?\n|: Tensor\) -> (?:Tensor|Tuple\[|List\[|Dict\[)", re.MULTILINE),
     Neighbour("the Python view of a TorchScript model (.code)", "print its graph instead: print(model.inlined_graph)")),
    (re.compile(r"\{ ?lambda ?(?:[^\n]*);[^\n]*\blet\b"), Neighbour(
        "a jaxpr", f"print the HLO of the same function, in place of jax.make_jaxpr(f)(*args):\n{PRINT_HLO}")),
    (_line(r"<ir_version: ?\d+", r"opset_import ?[:{]", r"ir_version: \d+$", r'producer_name: "', r"graph \S+ \($"),
     Neighbour("a text print of an ONNX model", ONNX_PRINT)),
    (_line(r"hlo_module ?\{", r'entry_computation_name: "', r"computations ?\{$"), HLO_PROTO),
    (re.compile(r"^node \{\s*\n\s*name: \"|^meta_graphs \{|^saved_model_schema_version:", re.MULTILINE),
     Neighbour("a TensorFlow GraphDef (pbtxt)", GRAPHDEF.help)),
    (_start(r"(?:strict )?(?:di)?graph\b[^(\n]*\{"),
     Neighbour("a graphviz .dot file", f"a drawing cannot be read back; give the dump that it was drawn from:\n{DUMP_HLO}")),
    (_line(r"BufferAssignment(?: OOM Debugging)?[.:]", r"Memory Space: \w+ \(color=\d+\)", r"HloLiveRange", r"Total bytes used:",
           r"Allocations sorted by size", r"xla_[a-z_]+: (?:true|false|\d+|\")"),
     Neighbour("a report that XLA writes beside its dumps",
               "give the module itself, *.before_optimizations.txt or *after_optimizations.txt, which is in the same folder")),
    (re.compile(r"Unknown flags? in XLA_FLAGS|xla_generate_hlo_(?:text_to|graph)|--xla_dump_hlo_text_to"),
     Neighbour("XLA's complaint about a flag that it no longer has", DUMP_HLO)),
    (_line(r"; ModuleID = ", r'target triple = "', r"define .*@\S+\(.*\{$"), Neighbour("LLVM IR", LOW_LEVEL)),
    (_line(r"\.version \d+\.\d+$", r"\.target sm_\d+", r"\.visible \.entry"), Neighbour("PTX", LOW_LEVEL)),
    (re.compile(r"^Model: \"|Layer \(type\) {2,}Output Shape", re.MULTILINE),
     Neighbour("a Keras model.summary()", f"it names layers, but no operations; print the HLO:\n{PRINT_HLO}")),
    (_line(r"\(\w+\): \w+\(.*(?:in_features|kernel_size|num_features|normalized_shape|inplace)="),
     Neighbour("the print of a torch.nn.Module", f"it names layers, but no operations; print the graph:\n{PRINT_TORCH}")),
    (_start(r'[\[{]\s*(?:"|\{|\[|\})'), Neighbour("JSON", "give the text that the compiler printed")),
    (_line(r"Traceback \(most recent call last\):"),
     Neighbour("a Python traceback", "the program that should have printed the graph failed; mend that first")),
    (_line(r"#!.*\bpython", r"import \w+(?:\.\w+)*(?: as \w+)?$", r"from [\w.]+ import ", r"def \w+\(.*\).*:$", r"class \w+.*:$"),
     Neighbour("Python source", f"irscope reads what the program prints, not the program; add to it, {PRINT_EITHER}")),
)

# Patterns of irscope's formats, for formats whose reader is not installed.
SIGHT: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("hlo", re.compile(r"^[^\n\"]{0,200}\bHloModule [\w.%-]|^[ \t]*ENTRY [%\w]|^[ \t]*(?:ROOT )?%?[\w.-]+ = [a-z0-9]+\[[\d,]*\]",
                       re.MULTILINE)),
    ("torchscript", re.compile(r"\bgraph\((?:%|\):)|= (?:aten|prim|onnx)::\w+[\[(]")),
    ("relay", re.compile(r"#\[version = \"|^[ \t]*def @\w+\(|^[ \t]*fn \(%|%\w+ = nn\.\w+\(", re.MULTILINE)),
)
