"""The nets of the comparison: ten of the zoo, and ten modules written for it. Imports no framework."""
from __future__ import annotations

from typing import Any

from benchmarks.zoo.net import Input, Net, image
from benchmarks.zoo.nets import NETS as ZOO

FROM_ZOO = ("gpt2", "llama", "albert", "t5", "whisper_encoder", "patchtst", "vit", "mobilenet_v3_small", "lstm_tagger", "squeezenet1_1")


def _own(name: str, **inputs: Input) -> Net:
    def build() -> Any:
        from benchmarks.doors.own_nets import OWN

        return OWN[name]()

    return Net(name, "torch", build, inputs)


NETS: dict[str, Net] = {name: ZOO[name] for name in FROM_ZOO} | {net.name: net for net in (
    _own("recommender", user=Input((6,), 50), history=Input((6, 5), 80)),
    _own("graph_net", x=Input((12, 8)), edges=Input((2, 30), 12)),
    _own("unet", **image(16)),
    _own("mixture", x=Input((2, 7, 16))),
    _own("waves", x=Input((1, 1, 40))),
    _own("rotary", x=Input((2, 10, 32))),
    _own("points", x=Input((2, 20, 3))),
    _own("scan", x=Input((2, 6, 12))),
    _own("half", x=Input((2, 5, 24))),
    _own("histogram", x=Input((3, 9))),
)}
