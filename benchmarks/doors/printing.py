"""Writes each net in four forms: ``python -m benchmarks.doors.printing FOLDER [NAME...]``, in the interpreter of the frameworks.

A folder for each net gets ``archive.pt2``, ``program.txt`` (the same exported program, printed) with ``program.npz``, its weights,
``traced.txt`` with ``traced.pt`` and ``traced.npz``, and ``model.onnx``. ``data.npz`` has the inputs, by the names of each form, and
torch's results ``out0``, ....
"""
from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.doors.nets import NETS
from benchmarks.zoo.export_torch import Called, constants, liven
from benchmarks.zoo.imports import import_torch_libraries
from benchmarks.zoo.net import Net

Arguments = tuple[torch.Tensor, ...]


def write(net: Net, folder: Path) -> None:
    """All forms of one net."""
    torch.manual_seed(0)
    module = Called(net.build(), list(net.inputs), net.library == "transformers").eval()
    liven(module)
    arguments = tuple(torch.from_numpy(given.draw(f"{net.name}/{name}")) for name, given in net.inputs.items())
    with torch.no_grad():
        results = module(*arguments)
        names = write_program(module, arguments, folder), write_traced(module, arguments, folder)
        torch.onnx.export(module, arguments, folder / "model.onnx", dynamo=True, external_data=False, verbose=False)
    inputs = {name: a for form in names for name, a in zip(form, arguments, strict=True)}
    results = {f"out{i}": r for i, r in enumerate(results)}
    np.savez(folder / "data.npz", **{name: tensor.numpy() for name, tensor in (inputs | results).items()})


def write_program(module: torch.nn.Module, arguments: Arguments, folder: Path) -> tuple[str, ...]:
    """The exported program as an archive and as a text, with the weights of the text by placeholder; returns the names of the inputs."""
    program = torch.export.export(module, arguments, strict=False)
    torch.export.save(program, folder / "archive.pt2")
    (folder / "program.txt").write_text(str(program))
    values: dict[str, Any] = {**program.state_dict, **program.constants}
    weights = {spec.arg.name: values[spec.target] for spec in program.graph_signature.input_specs if spec.target in values}
    halves = {name: "bfloat16" for name, value in weights.items() if value.dtype is torch.bfloat16}
    np.savez(folder / "program.npz", dtypes=json.dumps(halves), **{name: _array(value) for name, value in weights.items()})
    return tuple(program.graph_signature.user_inputs)


def write_traced(module: torch.nn.Module, arguments: Arguments, folder: Path) -> tuple[str, ...]:
    """The traced graph with its state dict, and the constants that its text elides; returns the names of the inputs."""
    traced = torch.jit.trace(module, arguments, check_trace=False)
    graph = traced.inlined_graph
    _state_shapes(graph, traced)
    (folder / "traced.txt").write_text(str(graph) + "\n")
    torch.save(dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False)),
               folder / "traced.pt")
    np.savez(folder / "traced.npz", **constants(graph))
    return tuple(value.debugName() for value in graph.inputs())[1:]


def _state_shapes(graph: Any, traced: Any) -> None:
    """Gives the attributes that the graph reads the types of their tensors, which a trace leaves open."""
    objects: dict[str, Any] = {next(graph.inputs()).debugName(): traced._c}
    for node in graph.findAllNodes("prim::GetAttr"):
        held = objects.get(node.input().debugName())
        if held is None:
            continue
        value = held.getattr(node.s("name"))
        if isinstance(value, torch.Tensor):
            node.output().inferTypeFrom(value)
        else:
            objects[node.output().debugName()] = value


def _array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """The values; numbers that numpy lacks as their bits."""
    kept = tensor.detach()
    return (kept.view(torch.uint16) if kept.dtype is torch.bfloat16 else kept).numpy()


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    import_torch_libraries()
    for name in sys.argv[2:] or NETS:
        folder = Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        write(NETS[name], folder)
        print(name, flush=True)


if __name__ == "__main__":
    main()
