"""Writes quantised models as torch prints and saves them, with inputs and outputs: python tests/oracle/write_quantized.py tests/data"""
from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.ao.quantization as quantization
from torch import nn


class Static(nn.Module):
    """Convolution, ReLU, linear; quantised after a run that watches the ranges."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.d = quantization.QuantStub(), quantization.DeQuantStub()
        self.c, self.r, self.l = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Linear(128, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.r(self.c(self.q(x)))
        made: torch.Tensor = self.d(self.l(torch.flatten(y, 1)))
        return made


class Dynamic(nn.Module):
    """Two linear layers whose inputs are quantised as they come."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 5), nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.b(torch.relu(self.a(x)))
        return made


def clean(graph: Any) -> str:
    """Source lines name no folder of this machine."""
    return re.sub(r"/\S*/(site-packages/)?", "", str(graph))


def main(folder: Path) -> None:
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    model = Static().eval()
    model.qconfig = quantization.get_default_qconfig("fbgemm")
    watched = quantization.prepare(quantization.fuse_modules(model, [["c", "r"]]))
    x = torch.randn(2, 3, 8, 8)
    watched(x)
    static = quantization.convert(watched)
    dynamic = quantization.quantize_dynamic(Dynamic().eval(), {nn.Linear}, dtype=torch.qint8)
    xd = torch.randn(4, 6)
    for name, net, example in (("static", static, x), ("dynamic", dynamic, xd)):
        (folder / f"quantized_{name}.txt").write_text(clean(torch.jit.trace(net, example).inlined_graph))
        torch.save(net.state_dict(), folder / f"quantized_{name}.pt")
    np.savez(folder / "quantized.npz", x_static=x.numpy(), y_static=static(x).numpy(), x_dynamic=xd.numpy(), y_dynamic=dynamic(xd).numpy())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
