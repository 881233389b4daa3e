"""Imports torchvision, timm and transformers, though torchvision's compiled operators may not fit the torch that is installed."""
from __future__ import annotations

import sys
from typing import Any

_WANTED = ("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
           "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
_DEFINED: list[Any] = []
"""Torch forgets operators with the library object that defined them."""


def import_torch_libraries() -> None:
    """PyPI's wheels of torchvision want CUDA, which a torch for the CPU has not: torchvision then misses its own operators at its import.

    Nets of the zoo call none of them, so that it is enough to declare the two that it looks for.
    """
    import torch

    try:
        import torchvision  # type: ignore[import-not-found, unused-ignore]
    except RuntimeError as error:
        if "torchvision::nms does not exist" not in str(error):
            raise
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        library = torch.library.Library("torchvision", "FRAGMENT")
        for schema in _WANTED:
            library.define(schema)
        _DEFINED.append(library)
    import timm  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
    import torchvision  # noqa: F401
    import transformers  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
