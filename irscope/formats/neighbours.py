"""Near neighbours: what people hand in that is no text we read, and the line that gives them one.

Two tables, one for bytes and one for texts; the first row that fits answers. A row says what the thing is and what to do instead.
"""
from __future__ import annotations

import re
from dataclasses import dataclass

# What a file begins with tells what it is; a log of this size may stand in front of it.
HEAD = 1 << 18

PRINT_TORCHSCRIPT = "print(torch.jit.trace(model.eval(), (example_input,)).inlined_graph)"
PRINT_HLO = "print(jax.jit(f).lower(*args).as_text(dialect='hlo')), or after XLA's own passes: print(jax.jit(f).lower(*args).compile().as_text())"
DUMP_HLO = "XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text' makes XLA write *.before_optimizations.txt and *.after_optimizations.txt"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Something that is not ours, by the name users give it, and what to do about it."""

    what: str
    help: str


def looks_printed(data: bytes) -> bool:
    """Whether bytes may be a text: no NUL, and few that a terminal would not show."""
    head = data[:1 << 16]
    if b"\0" in head:
        return False
    odd = len(head.translate(None, bytes(range(32, 256)) + b"\t\n\r\f\v\x1b\b"))
    return odd * 50 <= len(head)


def in_bytes(data: bytes) -> Neighbour | None:
    """What a binary file is, when it is one that people mistake for a dump."""
    for magic, neighbour in MAGIC:
        if data.startswith(magic):
            return neighbour
    if data[4:8] == b"TFL3":
        return TFLITE
    if data.startswith(b"PK\x03\x04"):
        return _in_zip(data)
    if len(data) > 9 and data[8:9] == b"{" and 0 < int.from_bytes(data[:8], "little") < 1 << 32 and b"\0" in data[:8]:
        return Neighbour("a safetensors file", "it holds weights and no graph: give the graph's text, and this file by --weights to compile-and-run")
    if data[:1] == b"\x80" and data[1:2] in b"\x02\x03\x04\x05":
        return PICKLE
    head = data[:HEAD]
    if not looks_printed(data):
        for pattern, neighbour in PROTOBUFS:
            if pattern.search(head):
                return neighbour
    return None


def in_text(text: str) -> Neighbour | None:
    """What a text is, when it is one that people mistake for a dump."""
    head = text[:HEAD]
    for pattern, neighbour in TEXTS:
        if pattern.search(head):
            return neighbour
    return None


def by_sight(text: str) -> str | None:
    """The format of ours that a text seems to be, for those whose reader is not here."""
    head = text[:HEAD]
    return next((name for name, pattern in SIGHT if pattern.search(head)), None)


def _in_zip(data: bytes) -> Neighbour:
    """A zip: npz, a TorchScript or torch.save archive, torch.export's .pt2, or a .keras file, by the names of its members."""
    import io
    import zipfile

    try:
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    except zipfile.BadZipFile:
        return Neighbour("a damaged zip archive (cut off?)", "copy it again; then say what is in it with unzip -l")
    if names and all(name.endswith(".npy") for name in names):
        return Neighbour("a numpy .npz archive", "it holds arrays and no graph: give the graph's text, and this file by --inputs or --weights to compile-and-run")
    if any("exported_program" in name or name.endswith("models/model.json") for name in names):
        return Neighbour("a torch.export archive (.pt2)", "print its graph as TorchScript:\n"
                         "import torch; m = torch.export.load('FILE').module(); print(torch.jit.trace(m, (example_input,)).inlined_graph)")
    if any("/code/" in name for name in names):
        return Neighbour("a TorchScript archive (torch.jit.save)", "print its graph with one line of Python, and give that to irscope:\n"
                         "python -c \"import torch; print(torch.jit.load('FILE', map_location='cpu').inlined_graph)\" > graph.txt")
    if any(name.endswith("data.pkl") for name in names):
        return Neighbour("a torch.save archive (a state dict or a pickled module)",
                         f"it holds weights and no graph; build the model in Python, load it, and print its graph:\n{PRINT_TORCHSCRIPT}")
    if "config.json" in names and "metadata.json" in names:
        return Neighbour("a .keras archive", "load it with the jax backend and print its HLO:\n"
                         "import keras, jax; m = keras.saving.load_model('FILE'); "
                         "print(jax.jit(lambda x: m(x)).lower(example_input).as_text(dialect='hlo'))")
    return Neighbour("a zip archive", "unpack it, and give the text file in it that holds the dump")


ONNX = Neighbour("an ONNX model (binary protobuf)", f"print the graph of the framework it came from instead; for PyTorch:\n{PRINT_TORCHSCRIPT}\nfor jax:\n{PRINT_HLO}")
PICKLE = Neighbour("a Python pickle", f"irscope opens no pickles, because that runs code; print the graph instead, for PyTorch:\n{PRINT_TORCHSCRIPT}")
TFLITE = Neighbour("a TensorFlow Lite model", f"print the HLO of the function before conversion:\n{PRINT_HLO}")
TF_HLO = "tf.function(f, jit_compile=True).experimental_get_compiler_ir(*args)(stage='hlo')"
GRAPHDEF = f"irscope reads the HLO that TensorFlow compiles it to: print({TF_HLO}),\nor {DUMP_HLO} (the old TF_DUMP_GRAPH_PREFIX and --xla_generate_hlo_graph do not)"
HLO_PROTO = f"give the text that lies beside it, or ask for it: {DUMP_HLO}"
COMPRESSED = "unpack it first"

MAGIC: tuple[tuple[bytes, Neighbour], ...] = (
    (b"\x89HDF\r\n", Neighbour("an HDF5 file (Keras weights?)", f"it holds weights; print the graph in Python:\n{PRINT_HLO}")),
    (b"\x89PNG", Neighbour("a PNG picture", "give the text that the picture was drawn from")),
    (b"\xff\xd8\xff", Neighbour("a JPEG picture", "give the text that the picture was drawn from")),
    (b"%PDF", Neighbour("a PDF", "give the text that it was made from")),
    (b"\x7fELF", Neighbour("compiled machine code (ELF)", f"give the text of the graph; {DUMP_HLO}")),
    (b"BC\xc0\xde", Neighbour("LLVM bitcode", f"give the text of the graph; {DUMP_HLO}")),
    (b"ML\xefR", Neighbour("MLIR bytecode (a StableHLO artefact?)", f"print HLO text instead:\n{PRINT_HLO}")),
    (b"\x93NUMPY", Neighbour("a numpy .npy array", "it holds an array and no graph: put inputs into an .npz and give it by --inputs to compile-and-run")),
    (b"\x28\xb5\x2f\xfd", Neighbour("a zstd archive", f"{COMPRESSED}: zstd -d FILE")),
    (b"\xfd7zXZ", Neighbour("an xz archive", f"{COMPRESSED}: xz -d FILE")),
    (b"BZh", Neighbour("a bzip2 archive", f"{COMPRESSED}: bzip2 -d FILE")),
    (b"7z\xbc\xaf\x27\x1c", Neighbour("a 7z archive", f"{COMPRESSED}: 7z x FILE")),
    (b"SQLite format 3", Neighbour("an SQLite database (a profiler's trace?)", f"give the text of the graph; {DUMP_HLO}")),
    (b"GGUF", Neighbour("a GGUF model", "it holds weights and no graph; print the graph in the framework that trains it")),
)

# Length-delimited strings inside: the operators' names in the fields where each of these keeps them.
PROTOBUFS: tuple[tuple[re.Pattern[bytes], Neighbour], ...] = (
    (re.compile(rb"\x12\x09parameter|\x12\x08constant[\x1a\x0a]"), Neighbour("a binary HLO proto (.hlo.pb)", HLO_PROTO)),
    (re.compile(rb"\A\x08[\x01-\x1f]\x12.[a-zA-Z]|\x22[\x03-\x20](?:Conv|Gemm|MatMul|Relu|Add|Mul|Constant|Identity|Reshape|Transpose)[\x2a\x32\x3a\x0a\x12]"), ONNX),
    (re.compile(rb"\x12\x0bPlaceholder|\x12\x05Const[\x1a\x22\x2a]|saved_model|\x12\x0eVarHandleOp"),
     Neighbour("a TensorFlow GraphDef or SavedModel (binary protobuf)", GRAPHDEF)),
)


def _line(pattern: str) -> re.Pattern[str]:
    """A pattern that must begin a line (after blanks)."""
    return re.compile(r"^[ \t]*(?:" + pattern + ")", re.MULTILINE)


def _start(pattern: str) -> re.Pattern[str]:
    """A pattern that must begin the text (after blanks)."""
    return re.compile(r"\A\s*(?:" + pattern + ")")


FX = f"torch.fx and torch.export graphs are not read; print the same model as TorchScript:\n{PRINT_TORCHSCRIPT}\n" \
     "(of an ExportedProgram ep, model is ep.module())"
RELAX = "Relax and TIR are not read; print the model where it came from instead, or from a TVM that has Relay: print(mod['main'])"
SIDE_FILE = "give the module itself, *.before_optimizations.txt or *.after_optimizations.txt, which lie in the same folder"

TEXTS: tuple[tuple[re.Pattern[str], Neighbour], ...] = (
    (_start(r"<!DOCTYPE|<html|<\?xml|<svg|<HTML"), Neighbour("HTML (a web page, or a drawing of a graph)", "give the text of the dump; a browser's 'save as text', or the raw file")),
    (re.compile(r"\bstablehlo\.[a-z_]+|\bvhlo\.|\bchlo\.|\bmhlo\.[a-z_]+"), Neighbour(
        "StableHLO (MLIR) text", f"print HLO instead: lowered.as_text(dialect='hlo'), or lowered.compile().as_text() for what XLA made of it:\n{PRINT_HLO}")),
    (_line(r"module (?:@\S+ )?(?:attributes )?\{|func\.func |llvm\.func |tt\.func |#map\d* = affine_map|\"builtin\.module\"|%\S+ = (?:arith|tensor|linalg|memref|scf|vector|tt|gpu)\."),
     Neighbour("MLIR text", f"irscope reads HLO, not MLIR dialects; for jax:\n{PRINT_HLO}")),
    (_line(r"@I\.ir_module|@R\.function|@T\.prim_func|from tvm\.script import|@tvm\.script\.ir_module|import tvm\.script"), Neighbour("TVMScript (Relax or TIR)", RELAX)),
    (_line(r"ExportedProgram:|class GraphModule\(|GraphModule\(|%\S+ : .*= (?:placeholder|call_function|call_module|call_method|get_attr|output)\[target=|graph\(\):$|opcode\s+name\s+target\s+args\s+kwargs"),
     Neighbour("a torch.fx or torch.export print", FX)),
    (re.compile(r"\{ ?lambda ?(?:[a-z0-9_:\[\],; ]*|\S.*); .*\. ?let\b|\blet\s*\n.*:\w+\[[\d,]*\] = "), Neighbour("a jaxpr", f"print the HLO of the same function:\n{PRINT_HLO}")),
    (_line(r"<ir_version: ?\d+|opset_import ?[:{]|ir_version: \d+$|producer_name: \"|graph \S+ \($"), Neighbour("a text print of an ONNX model", ONNX.help)),
    (_line(r"hlo_module ?\{|entry_computation_name: \"|computations ?\{$"), Neighbour("an HLO proto in text form (pbtxt)", HLO_PROTO)),
    (re.compile(r"^node \{\s*\n\s*name: \"|^meta_graphs \{|^saved_model_schema_version:", re.MULTILINE), Neighbour("a TensorFlow GraphDef (pbtxt)", GRAPHDEF)),
    (_start(r"(?:strict )?(?:di)?graph\b[^(\n]*\{"), Neighbour("a graphviz .dot file", f"a drawing cannot be read back; give the dump it was drawn from; {DUMP_HLO}")),
    (_line(r"BufferAssignment(?: OOM Debugging)?[.:]|HloLiveRange|Total bytes used:|Allocations sorted by size|xla_[a-z_]+: (?:true|false|\d+|\")"),
     Neighbour("a report that XLA writes beside its dumps", SIDE_FILE)),
    (_line(r"; ModuleID = |target triple = \"|define .*@\S+\(.*\{$"), Neighbour("LLVM IR", f"irscope reads graphs; {DUMP_HLO}")),
    (_line(r"\.version \d+\.\d+$|\.target sm_\d+|\.visible \.entry"), Neighbour("PTX", f"irscope reads graphs; {DUMP_HLO}")),
    (re.compile(r"^Model: \"|Layer \(type\) {2,}Output Shape", re.MULTILINE), Neighbour("a Keras model.summary()", f"it names layers, but no operations; print the HLO:\n{PRINT_HLO}")),
    (_line(r"\(\w+\): \w+\(.*(?:in_features|kernel_size|num_features|normalized_shape|inplace)="), Neighbour(
        "the print of a torch.nn.Module", f"it names layers, but no operations; print the graph:\n{PRINT_TORCHSCRIPT}")),
    (_start(r"[\[{]\s*(?:\"|\{|\[|\})"), Neighbour("JSON", "irscope reads the text that a compiler prints, not JSON; give the dump that it was made from")),
    (_line(r"Traceback \(most recent call last\):"), Neighbour("a Python traceback, not a dump", "the program that should have printed the graph failed; mend that first")),
    (_line(r"#!.*\bpython|import \w+(?:\.\w+)*(?: as \w+)?$|from [\w.]+ import |def \w+\(.*\).*:$|class \w+.*:$"), Neighbour(
        "Python source", f"irscope reads what the program prints, not the program; add to it, for PyTorch:\n{PRINT_TORCHSCRIPT}\nfor jax:\n{PRINT_HLO}")),
)

SIGHT: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("hlo", re.compile(r"^[^\n\"]{0,200}\bHloModule [\w.%-]|^[ \t]*ENTRY [%\w]|^[ \t]*(?:ROOT )?%?[\w.-]+ = [a-z0-9]+\[[\d,]*\]", re.MULTILINE)),
    ("torchscript", re.compile(r"\bgraph\((?:%|\):)|= (?:aten|prim|onnx)::\w+[\[(]")),
    ("relay", re.compile(r"#\[version = \"|^[ \t]*def @\w+\(|^[ \t]*fn \(%|%\w+ = nn\.\w+\(", re.MULTILINE)),
)
