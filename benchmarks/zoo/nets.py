"""All nets of the zoo, by name. Imports no framework: each net asks for its own when it is built."""
from __future__ import annotations

from benchmarks.zoo import keras_nets, timm_nets, torchvision_nets, transformers_nets
from benchmarks.zoo.net import Net

NETS: dict[str, Net] = {net.name: net for table in (torchvision_nets, timm_nets, transformers_nets, keras_nets) for net in table.NETS}


def forms(net: Net) -> tuple[str, ...]:
    """The texts that are made of it."""
    return ("hlo",) if net.package == "keras" else ("inlined", "frozen")
