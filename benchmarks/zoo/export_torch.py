"""Writes a net of torch as irscope's users would: the inlined graph with its state dict, the frozen graph with its constants."""
from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.zoo.net import Net


def export(net: Net, folder: Path) -> None:
    """``inlined.txt`` and ``frozen.txt``, each with its inputs and constants by the names there; ``weights.pt`` and ``expected.npz``."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    module = Called(net.build(), list(net.inputs), net.package == "transformers").eval()
    liven(module)
    arrays = [torch.from_numpy(given.draw(f"{net.name}/{name}")) for name, given in net.inputs.items()]
    with torch.no_grad():
        results = module(*arrays)
        traced = torch.jit.trace(module, tuple(arrays), check_trace=False)
        frozen = torch.jit.freeze(traced)
    expected = {f"out{i}": result.numpy() for i, result in enumerate(results)}
    if not all(np.isfinite(v).all() for v in expected.values()):
        raise ValueError("the framework's own results are not finite")
    np.savez(folder / "expected.npz", **expected)
    weights = dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))
    torch.save(weights, folder / "weights.pt")
    for name, graph in (("inlined", traced.inlined_graph), ("frozen", frozen.graph)):
        (folder / f"{name}.txt").write_text(str(graph) + "\n")
        np.savez(folder / f"{name}.constants.npz", **constants(graph))
        named = [value.debugName() for value in graph.inputs()][1:]
        np.savez(folder / f"{name}.inputs.npz", **{n: a.numpy() for n, a in zip(named, arrays, strict=True)})


class Called(torch.nn.Module):
    """The net with its inputs by position and its results as a flat tuple of tensors."""

    def __init__(self, net: torch.nn.Module, names: list[str], keywords: bool) -> None:
        super().__init__()
        self.net, self.names, self.keywords = net, names, keywords

    def forward(self, *arrays: torch.Tensor) -> tuple[torch.Tensor, ...]:
        result = self.net(**dict(zip(self.names, arrays, strict=True))) if self.keywords else self.net(*arrays)
        return tuple(_tensors(result))


def _tensors(result: Any) -> Iterator[torch.Tensor]:
    waiting = [result]
    while waiting:
        part = waiting.pop()
        if isinstance(part, torch.Tensor):
            yield part
        elif isinstance(part, dict):
            waiting.extend(reversed(list(part.values())))
        elif isinstance(part, (list, tuple)):
            waiting.extend(reversed(part))


def liven(module: torch.nn.Module) -> None:
    """Draws new values for weights that are all equal (scales of 1 or 1e-6, biases of 0, statistics), which would hide a fault."""
    with torch.no_grad():
        for name, value in [*module.named_parameters(), *module.named_buffers()]:
            if not value.is_floating_point() or value.numel() < 2 or not (isinstance(value, torch.nn.Parameter) or "running_" in name):
                continue
            if (value == value.flatten()[0]).all():
                value.uniform_(0.8, 1.2) if value.flatten()[0] == 1 else value.uniform_(-0.1, 0.1)


def constants(graph: Any) -> dict[str, np.ndarray[Any, Any]]:
    """The constants of a graph, by value name: its text has those of ten elements at most. Lists of several are given by place."""
    found: dict[str, np.ndarray[Any, Any]] = {}
    for node in graph.findAllNodes("prim::Constant"):
        if not node.hasAttribute("value"):
            continue
        name, value = node.output().debugName(), node.output().toIValue()
        tensors = [part.detach().numpy() for part in (value if isinstance(value, list) else [value]) if isinstance(part, torch.Tensor)]
        by_place = str(node.output().type()) == "List[Tensor]"
        found |= {f"{name}.{place}" if by_place else name: tensor for place, tensor in enumerate(tensors)}
    return found
