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


if __name__ == "__main__":
    main(Path(sys.argv[1]))
