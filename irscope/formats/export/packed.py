"""From a .pt2 archive to a module: its graphs, signature, sizes, and the values that it holds."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.formats.export.archive import Archive
from irscope.formats.export.archive_provenance import ArchiveProvenance, call_stack
from irscope.formats.export.archived import ArchivedGraphReader
from irscope.formats.export.dialect import EXPORT
from irscope.formats.export.printer import write
from irscope.formats.export.pytrees import call_paths
from irscope.formats.export.records import BadRecord, Record, parse
from irscope.formats.export.signature import Port, Signature, sign
from irscope.formats.export.stored import StoredValues
from irscope.formats.export.targets import Targets
from irscope.graph import DynamicDim, Module, Node, Reading, TensorType
from irscope.graph.collector import collector_paused
from irscope.source import SourceText
from irscope.source.files import Bytes

MAJOR = 8
"""The major version of the schema that irscope reads: torch 2.6 to 2.15 write it."""


def read_bytes(data: Bytes, name: str) -> Reading:
    """Read an archive. Raises UserError, with the path in it, where it is damaged, hostile, or of another schema."""
    archive = Archive(data, name)
    reading = Reading(SourceText(name, ""), "export")
    try:
        with collector_paused():
            reading.modules.append(_module(archive, reading.source))
    except BadRecord as error:
        raise archive.fault(f"{archive.model}: {error}", "the archive is damaged, or torch.export.save did not write it") from None
    return reading


def _module(archive: Archive, source: SourceText) -> Module:
    program = parse(archive.text(archive.model), archive.model)
    _check_version(archive, program)
    file = source.name.rpartition("/")[2] or "model"
    module = Module(file, EXPORT, source=source)
    held = program.record("graph_module")
    signature = read_signature(held.record("signature"))
    graph = held.record("graph")
    inputs = graph.items("inputs")
    if len(inputs) != len(signature.inputs):
        raise BadRecord(f"graph_module.signature: it has {len(signature.inputs)} inputs, the graph has {len(inputs)}")
    names = _names(held, signature)
    reader = ArchivedGraphReader(module, Targets(), graph)
    main = reader.read("GraphModule", names)
    signature.inputs = [Port(p.kind, param.name, p.target, p.persistent) for p, param in zip(signature.inputs, main.params, strict=True)]
    module.entry = main.name
    sign(module, signature)
    module.attrs |= {"ranges": _ranges(program), "guards": _guards(program), "hints": _hints(graph, main.params)}
    if isinstance(torch := program.values.get("torch_version"), str):
        module.attrs["torch_version"] = torch
    module.attrs |= call_paths(held, signature)
    module.stored = StoredValues(archive, signature)
    _place(module, reader)
    return module


def _place(module: Module, reader: ArchivedGraphReader) -> None:
    """Give the module a text, and its nodes their places in it: messages quote lines of FX."""
    metadata = reader.metadata
    text, places = write(module, lambda node: call_stack(metadata[node]) if node in metadata else ())
    module.source.text = text
    for node, place in places.items():
        node.loc = place
    for graph in module.graphs.values():
        graph.loc = graph.params[0].loc if graph.params else graph.nodes[0].loc if graph.nodes else 0
    module.provenance = ArchiveProvenance({places[node]: record for node, record in metadata.items() if node in places})


def _check_version(archive: Archive, program: Record) -> None:
    version = program.record("schema_version") if program.has("schema_version") else None
    if version is None:
        raise BadRecord("schema_version is missing")
    major = version.number("major")
    if major != MAJOR:
        torch = program.values.get("torch_version")
        by = f" (torch {torch})" if isinstance(torch, str) else ""
        raise archive.fault(f"{archive.model} has the schema version {major}{by}; irscope reads {MAJOR}",
                            "print(ep) of the loaded program is read as well")


def _names(held: Record, signature: Signature) -> list[str]:
    """The names of the inputs; those of constants are not in the graph, but in the signature of the module."""
    names = [port.name for port in signature.inputs]
    for entry in held.records("module_call_graph") if held.has("module_call_graph") else ():
        if entry.values.get("fqn") != "" or not entry.has("signature"):
            continue
        given = entry.record("signature")
        users = [i for i, port in enumerate(signature.inputs) if port.kind == "USER_INPUT"]
        own = [n for n in given.items("forward_arg_names") if isinstance(n, str)] if given.has("forward_arg_names") else []
        if len(own) == len(users):
            for i, name in zip(users, own, strict=True):
                names[i] = names[i] or name
    return names


def read_signature(record: Record) -> Signature:
    """What the inputs and outputs are to the user."""
    return Signature([_port(each, INPUTS) for each in record.records("input_specs")],
                     [_port(each, OUTPUTS) for each in record.records("output_specs")])


INPUTS = {"user_input": ("USER_INPUT", ""), "parameter": ("PARAMETER", "parameter_name"), "buffer": ("BUFFER", "buffer_name"),
          "tensor_constant": ("CONSTANT_TENSOR", "tensor_constant_name"), "custom_obj": ("CUSTOM_OBJ", "custom_obj_name"),
          "token": ("TOKEN", ""), "constant_input": ("USER_INPUT", "")}
OUTPUTS = {"user_output": ("USER_OUTPUT", ""), "loss_output": ("LOSS_OUTPUT", ""), "buffer_mutation": ("BUFFER_MUTATION", "buffer_name"),
           "gradient_to_parameter": ("GRADIENT_TO_PARAMETER", "parameter_name"), "token": ("TOKEN", ""),
           "gradient_to_user_input": ("GRADIENT_TO_USER_INPUT", "user_input_name"),
           "user_input_mutation": ("USER_INPUT_MUTATION", "user_input_name"),
           "parameter_mutation": ("PARAMETER_MUTATION", "parameter_name")}
"""The kinds in torch's words, and the key of the state's path."""


def _port(record: Record, kinds: dict[str, tuple[str, str]]) -> Port:
    kind = record.only()
    if kind not in kinds:
        raise BadRecord(f"{record.path}: irscope knows no {kind!r:.60} in a signature")
    inner = record.record(kind)
    word, key = kinds[kind]
    target = inner.text(key) if key else ""
    return Port(word, _name(inner), target, inner.flag("persistent", True))


def _name(record: Record) -> str:
    """The name of a port's value; empty for a constant."""
    if not record.has("arg"):
        return record.text("name") if record.has("name") else ""
    given = record.record("arg")
    if given.has("name"):
        return given.text("name")
    inner = given.values.get(given.only())
    if isinstance(inner, dict):
        name = inner.get("name") or inner.get("as_name")
        return name if isinstance(name, str) else ""
    return ""


def _ranges(program: Record) -> dict[str, tuple[str, str]]:
    """The smallest and the largest value of each symbol, as torch prints them."""
    if not program.has("range_constraints"):
        return {}
    held = program.record("range_constraints")
    ranges = {}
    for symbol in held.values:
        bounds = held.record(symbol)
        low, high = (str(bounds.number(key)) if bounds.has(key) else word for key, word in (("min_val", "-int_oo"), ("max_val", "int_oo")))
        ranges[symbol] = low, high
    return ranges


def _guards(program: Record) -> tuple[str, ...]:
    return tuple(text for text in program.items("guards_code") if isinstance(text, str)) if program.has("guards_code") else ()


def _hints(graph: Record, params: Sequence[Node]) -> dict[str, int]:
    """The size that each symbol had when the program was exported, where an input has it as a size."""
    values, hints = graph.record("tensor_values"), {}
    for param in params:
        if not isinstance(param.type, TensorType) or param.type.is_static or not values.has(param.name):
            continue
        for dim, size in zip(param.type.shape, values.record(param.name).records("sizes"), strict=True):
            if isinstance(dim, DynamicDim) and dim.name.isidentifier() and (held := size.record("as_expr")).has("hint"):
                hints[dim.name] = held.record("hint").number("as_int")
    return hints
