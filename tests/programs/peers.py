"""What XLA and torch give for random programs: for the oracle's environment, which has jax and torch installed."""
from __future__ import annotations

import os
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class PeerRefused(Exception):
    """The other engine does not take a program."""


# ---------------------------------------------------------------------- XLA


def by_xla(text: str, arrays: list[Array]) -> list[Array]:
    """What XLA's CPU compiler gives for a module; raises PeerRefused."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax

    from tests.oracle.record_dynamic import run

    jax.config.update("jax_enable_x64", True)
    try:
        return run(text, arrays)
    except Exception as error:
        raise PeerRefused(f"{type(error).__name__}: {error}") from error


# ---------------------------------------------------------------------- torch


def by_torch(text: str, arrays: list[Array]) -> list[Array]:
    """What torch gives for a graph as it prints it; raises PeerRefused."""
    import torch

    torch.set_num_threads(1)
    try:
        graph = torch._C.parse_ir(text, False)
        with torch.no_grad():
            function = torch._C._create_function_from_graph("main", graph)
            return [array_of(t) for t in function(*map(tensor_of, arrays))]
    except Exception as error:
        raise PeerRefused(f"{type(error).__name__}: {str(error)[-300:]}") from error


def traced(text: str, arrays: list[Array]) -> str:
    """The text of a trace of the same calls: the graph is run operator by operator, with Python's own branches and loops."""
    import torch

    graph = torch._C.parse_ir(text, False)
    try:
        with torch.no_grad():
            made = torch.jit.trace(lambda *tensors: tuple(run_graph(graph, tensors)), tuple(map(tensor_of, arrays)), check_trace=False)
    except Exception as error:
        raise PeerRefused(f"{type(error).__name__}: {str(error)[-300:]}") from error
    return str(made.inlined_graph)


def run_graph(graph: Any, tensors: tuple[Any, ...]) -> list[Any]:
    """Run a graph through torch.ops. Blocks nest two deep, so that a function that calls itself does."""
    import torch

    values: dict[str, Any] = {v.debugName(): t for v, t in zip(graph.inputs(), tensors, strict=True)}

    def block(nodes: Any) -> None:
        for node in nodes:
            kind, names = node.kind(), [v.debugName() for v in node.outputs()]
            given = [values[v.debugName()] for v in node.inputs()]
            if kind == "prim::Constant":
                made = [node.output().toIValue()]
            elif kind in ("prim::ListConstruct", "prim::TupleConstruct"):
                made = [list(given)]
            elif kind in ("prim::ListUnpack", "prim::TupleUnpack"):
                made = list(given[0])
            elif kind == "prim::NumToTensor" or kind == "aten::Int":
                made = [int(given[0])]
            elif kind == "aten::Bool":
                made = [bool(given[0])]
            elif kind == "prim::If":
                chosen = list(node.blocks())[0 if given[0] else 1]
                block(chosen.nodes())
                made = [values[v.debugName()] for v in chosen.outputs()]
            elif kind == "prim::Loop":
                made = loop(node, given)
            elif kind == "aten::size":
                made = [given[0].shape[given[1]]]
            elif not isinstance(given[0], torch.Tensor | list):
                made = [given[0] > given[1] if kind == "aten::gt" else given[0] == given[1]]
            else:
                schema = torch._C.parse_schema(node.schema())
                operator = getattr(getattr(torch.ops.aten, kind.removeprefix("aten::")), schema.overload_name or "default")
                keywords = {a.name: v for a, v in zip(schema.arguments, given, strict=True) if a.kwarg_only}
                out = operator(*given[:len(given) - len(keywords)], **keywords)
                made = list(out) if isinstance(out, tuple) else [out]
            values.update(zip(names, made, strict=True))

    def loop(node: Any, given: list[Any]) -> list[Any]:
        trips, go_on, *state = given
        (body,) = node.blocks()
        names = [v.debugName() for v in body.inputs()]
        for i in range(trips):
            if not go_on:
                break
            values.update(zip(names, [i, *state], strict=True))
            block(body.nodes())
            go_on, *state = [values[v.debugName()] for v in body.outputs()]
        return state

    block(graph.nodes())
    (result,) = graph.outputs()
    made: list[Any] = values[result.debugName()]
    return made


def tensor_of(array: Array) -> Any:
    """A tensor with memory of its own."""
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


def array_of(tensor: Any) -> Array:
    """A new array of a tensor's numbers."""
    import ml_dtypes
    import torch

    tensor = tensor.detach().resolve_conj().contiguous()
    if tensor.dtype is torch.bfloat16:
        return np.asarray(tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)).copy()
    return np.asarray(tensor.numpy()).copy()
