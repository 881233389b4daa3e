"""The module that ``compile-and-run`` compiles: shapes, element types and constants that the text leaves open are bound."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from irscope.cli.progress import Progress
from irscope.graph import Module, Node
from irscope.lazy import Array
from irscope.source import UserError

if TYPE_CHECKING:

    from irscope.cli.run_arrays import Files
    from irscope.cli.run_request import Request


WHOLE_TEXT = {
    "hlo": "; XLA prints large constants with --xla_dump_large_constants=true, jax with print_large_constants",
    "relay": "; TVM prints the table of constants with mod.astext(show_meta_data=True)",
}
"""How the source of a text prints the values of its constants, by format."""


def bound(request: Request, module: Module, files: Files) -> Module:
    """The module for these arrays: a program is run over abstract values, a graph gets its types; then constants get values."""
    from irscope.backends.opening import needs_opening

    made = _opened(request, module, files) if needs_opening(module) else _typed(request, module, files)
    made = _filled(request, made, files)
    if request.partitions == 1:
        _refuse_shards(module)
        _note_partitions(module)
        return made
    from irscope.expand.partitions import partitioned

    return partitioned(made, request.partitions)


def _refuse_shards(module: Module) -> None:
    """Raise UserError where a text cuts arrays into the shards of several devices."""
    from irscope.expand import manual
    from irscope.graph import callees_first
    from irscope.lower.faults import cannot_run

    node = manual.boundary(callees_first(module, module.main())) if module.format == "hlo" else None
    if node is not None:
        devices = manual.devices_of(module, node)
        raise cannot_run(module, node, f"it {'cuts arrays into' if manual.cuts(node) else 'joins'} the shards of "
                                       f"{devices} devices", f"--partitions {devices} runs the program on {devices} simulated devices")


def _note_partitions(module: Module) -> None:
    """Say that a program of several devices runs as if it were alone, where it talks to the others."""
    import sys

    from irscope.expand.partitions import TOGETHER
    from irscope.graph import callees_first

    devices = module.attrs.get("num_partitions", 1)
    talks = module.format == "hlo" and any(
        node.op.name.removesuffix("-start") in TOGETHER for graph in callees_first(module, module.main()) for node in graph.nodes)
    if isinstance(devices, int) and devices > 1 and talks:
        print(f"note: this is the program of one of {devices} devices, and runs as if it were alone; --partitions {devices} runs all",
              file=sys.stderr)


def _opened(request: Request, module: Module, files: Files) -> Module:
    """The primitive graph of a program."""
    from irscope.backends.opening import opened

    def measure(part: Module, arrays: Any) -> int:
        from irscope.backends.model import compile_module, ports_of

        model = compile_module(part, {}, request.options(), request.cpu, not request.no_cache)
        return int(model(*[arrays[p.name] for p in ports_of(part)[0]])[0])

    with Progress("expanding"):
        return opened(module, files.inputs, files.weights, files.constants, request.shapes, request.dtypes, measure)


def _typed(request: Request, module: Module, files: Files) -> Module:
    """The module with shapes and element types bound."""
    from irscope.expand import bind_types

    return bind_types(module, {**_given_shapes(module, files), **request.shapes}, request.dtypes)


def _given_shapes(module: Module, files: Files) -> dict[str, tuple[int, ...]]:
    """The shapes of given arrays, for inputs whose shape the text leaves open; a bounded one is padded at each run."""
    from irscope.graph import TensorType

    opens = {f"arg{i}": p.name for i, p in enumerate(module.main().params)
             if isinstance(p.type, TensorType) and any(not isinstance(d, int) and d.bound is None for d in p.type.shape)}
    opens |= {name: name for name in opens.values()}
    return {opens[name]: arrays[name].shape for arrays in (files.inputs, files.weights) for name in arrays if name in opens}


def _filled(request: Request, module: Module, files: Files) -> Module:
    """The module with values for the constants that the text elides."""
    from irscope.expand import bind_constants
    from irscope.expand.bind import elided_constants

    elided = elided_constants(module)
    if not elided:
        return module
    from irscope.backends.arguments import draw, fitted
    from irscope.backends.executable import Port
    from irscope.graph import TensorType
    from irscope.source import did_you_mean

    values: dict[str, Array] = {}
    for number, node in enumerate(elided):
        type = node.type
        if not isinstance(type, TensorType):
            raise UserError(f"the text elides %{node.name}, a tuple: its values cannot be given")
        port = Port(node.name, type.dtype, type.dims())
        if node.name in files.constants:
            values[node.name] = fitted(files.constants[node.name], port, f"{request.constants}: {node.name}")
        elif request.fill_elided:
            values[node.name] = draw(port, request.seed, 1_000_000 + number)
        else:
            near = did_you_mean(node.name, files.constants)
            more = f" (and {len(elided) - 1} more)" if len(elided) > 1 else ""
            raise _elided(module, node, f"the text elides the value of the constant %{node.name}, {type}{more}",
                          near or f"--constants C.npz gives it by name, --fill-elided draws it{WHOLE_TEXT.get(module.format, '')}")
    return bind_constants(module, values)


def _elided(module: Module, node: Node, message: str, help: str) -> UserError:
    """The error for a constant without a value, with its place in the text and the user's own line."""
    from irscope.source import Finding, Severity

    if node.loc < 0 or not module.source.text:
        return UserError(message, help)
    stack = module.call_stack(node)
    finding = Finding("KRN001", "cannot-run", Severity.ERROR, message, module.source, node.loc, len(node.name), node=node.name,
                      graph=module.entry, help=help, source_line=str(stack[0]) if stack else "")
    return UserError(f"the constant %{node.name} has no value", findings=[finding])
