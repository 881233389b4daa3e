"""The packages that run programs, each imported on demand: reading HLO does not import torch's operators."""
from __future__ import annotations

from typing import TYPE_CHECKING

from irscope.lazy import LazyModule

if TYPE_CHECKING:
    from irscope.expand import relay, torchscript
else:
    relay = LazyModule("irscope.expand.relay")
    torchscript = LazyModule("irscope.expand.torchscript")

__all__ = ["relay", "torchscript"]
