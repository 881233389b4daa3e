"""Writes the files of weights that the tests read, with torch itself: python tests/oracle/write_checkpoints.py tests/data"""
from __future__ import annotations

import sys
from collections import OrderedDict
from pathlib import Path

import torch


class Net(torch.nn.Module):
    """Two layers, one of them without gradient, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(3, 2)
        self.norm = torch.nn.BatchNorm1d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.fc(x)))


def main(folder: Path) -> None:
    torch.manual_seed(0)
    net = Net().eval()
    with torch.no_grad():
        net.fc.weight.copy_(torch.arange(6.0).reshape(2, 3) / 4)
        net.fc.bias.copy_(torch.tensor([0.5, -1.0]))
    state = net.state_dict()
    torch.save(state, folder / "state.pt")
    torch.save(net, folder / "whole.pt")
    torch.save(net.state_dict(), folder / "state_legacy.pt", _use_new_zipfile_serialization=False)
    base = torch.arange(12.0).reshape(3, 4)
    torch.save({"epoch": 3, "optimizer": {"state": {}, "param_groups": [{"lr": 0.1}]},
                "state_dict": OrderedDict((f"module.{k}", v) for k, v in {
                    "turned": base.t(), "part": base[1:, 2:], "half": base.to(torch.bfloat16), "small": base.to(torch.float8_e4m3fn),
                    "flags": base > 3, "number": torch.tensor(7), "none": base[:0], "whole": base}.items())}, folder / "wrapped.pt")
    torch.jit.script(net).save(str(folder / "scripted.pt"))
    torch.save(attributed(base), folder / "attributes.pt")
    torch.save(unusual(base), folder / "unusual.pt")
    torch.save(torch.nn.ReLU().state_dict(), folder / "empty.pt")
    torch.save(torch.nn.Sequential(torch.nn.ReLU()), folder / "empty_whole.pt")


def attributed(base: torch.Tensor) -> dict[str, torch.Tensor]:
    """The parameters and buffers of a module whose tensors have Python attributes or classes of their own."""
    module = torch.nn.Module()
    module.ids = torch.nn.Buffer(torch.arange(8).reshape(1, 8))
    module.register_buffer("turned", base.t())
    module.turned.initialized = True
    module.weight = torch.nn.Parameter(base.clone())
    module.weight.tag = "kept"
    module.norm = torch.nn.BatchNorm2d(3)
    for tensor in module.norm.buffers():
        tensor.initialized = True
    return dict(module.named_parameters()) | dict(module.named_buffers())


class FromNumpy:
    """A tensor as devices without storages save it: by way of numpy."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __reduce__(self) -> tuple[object, ...]:
        return torch._utils._rebuild_device_tensor_from_numpy, (self.tensor.numpy(), self.tensor.dtype, "cpu", False)


class FromCpu(FromNumpy):
    """The same by way of a tensor in main memory."""

    def __reduce__(self) -> tuple[object, ...]:
        return torch._utils._rebuild_device_tensor_from_cpu_tensor, (self.tensor, torch.float16, "cpu", False)


def unusual(base: torch.Tensor) -> dict[str, object]:
    """Tensors by every function of torch that makes one from a file, those without dense data too."""
    pairs = torch.view_as_complex(base.reshape(3, 2, 2).clone())
    others = pairs.clone()  # a file cannot hold one storage as two element types
    return {"numpy": FromNumpy(base), "columns": FromNumpy(base.t()), "cpu": FromCpu(base), "conjugate": pairs.conj(),
            "negative": others.conj().imag, "half": torch.nn.Parameter(base.to(torch.bfloat16)), "wide": base.to(torch.int16).to(torch.uint16),
            "sparse": base.to_sparse(), "nested": torch.nested.nested_tensor([base[0], base[1, :2]]), "meta": base.to("meta")}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
