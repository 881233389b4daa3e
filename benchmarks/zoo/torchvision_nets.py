"""The zoo's nets of torchvision, and two made of torch's recurrent layers."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.zoo.net import Input, Net, image


def _vision(path: str, **options: Any) -> Callable[[], Any]:
    """The maker at this path below torchvision.models, called without pretrained weights."""
    def build() -> Any:
        import torchvision  # type: ignore[import-not-found, unused-ignore]

        make = torchvision.models
        for part in path.split("."):
            make = getattr(make, part)
        return make(**options)
    return build


def _net(name: str, size: int, path: str = "", reduced: str = "", **options: Any) -> Net:
    said = f"{size} px" + (f"; {reduced}" if reduced else "")
    return Net(name, "torchvision", _vision(path or name, weights=None, **options), image(size), said)


def _vit() -> Any:
    from torchvision.models import VisionTransformer  # type: ignore[import-not-found, unused-ignore]

    return VisionTransformer(64, 16, num_layers=4, num_heads=4, hidden_dim=128, mlp_dim=256, num_classes=100)


def _pyramid() -> Any:
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone  # type: ignore[import-not-found, unused-ignore]

    return resnet_fpn_backbone(backbone_name="resnet18", weights=None)


def _tagger() -> Any:
    from torch import nn

    class Tagger(nn.Module):
        """A word tagger: embedding, two layers of a bidirectional LSTM, a class for every word."""

        def __init__(self) -> None:
            super().__init__()
            self.words, self.rnn = nn.Embedding(200, 48), nn.LSTM(48, 40, num_layers=2, bidirectional=True, batch_first=True)
            self.classes = nn.Linear(80, 17)

        def forward(self, x: Any) -> Any:
            return self.classes(self.rnn(self.words(x))[0]).log_softmax(-1)

    return Tagger()


def _translator() -> Any:
    import torch
    from torch import nn

    class Translator(nn.Module):
        """A GRU that reads, and one that writes four words, each the likeliest after the last, with attention to what was read."""

        def __init__(self) -> None:
            super().__init__()
            self.words, self.reader = nn.Embedding(200, 48), nn.GRU(48, 48, batch_first=True)
            self.writer, self.out = nn.GRUCell(96, 48), nn.Linear(48, 200)

        def forward(self, x: Any) -> Any:
            read, state = self.reader(self.words(x))
            state, word, said = state[0], x[:, 0], []
            for _ in range(4):
                weights = torch.softmax(torch.bmm(read, state.unsqueeze(2)), 1)
                state = self.writer(torch.cat([self.words(word), (weights * read).sum(1)], 1), state)
                said.append(self.out(state))
                word = said[-1].argmax(1)
            return torch.stack(said, 1)

    return Translator()


NETS = [
    _net("alexnet", 64, reduced="20 classes", num_classes=20),
    _net("vgg11_bn", 32, reduced="20 classes", num_classes=20),
    _net("squeezenet1_1", 64),
    _net("resnet50", 64),
    _net("resnext50_32x4d", 64),
    _net("densenet121", 64),
    _net("googlenet", 64, init_weights=False, aux_logits=False),
    _net("inception_v3", 96, init_weights=False, aux_logits=False),
    _net("mobilenet_v2", 64),
    _net("mobilenet_v3_small", 64),
    _net("shufflenet_v2_x1_0", 64),
    _net("mnasnet0_5", 64),
    _net("efficientnet_b0", 64),
    _net("efficientnet_v2_s", 64),
    _net("regnet_y_400mf", 64),
    _net("convnext_tiny", 64),
    Net("vit", "torchvision", _vit, image(64), "64 px, 4 layers of width 128"),
    _net("swin_t", 64),
    _net("swin_v2_t", 64),
    Net("maxvit", "torchvision", _vision("MaxVit", input_size=(64, 64), stem_channels=32, partition_size=2, block_channels=[32, 64, 128],
                                         block_layers=[1, 1, 2], head_dim=16, stochastic_depth_prob=0.0), image(64), "64 px, 4 blocks"),
    _net("fcn_resnet50", 64, "segmentation.fcn_resnet50", weights_backbone=None),
    _net("deeplabv3_mobilenet", 64, "segmentation.deeplabv3_mobilenet_v3_large", weights_backbone=None),
    _net("lraspp_mobilenet", 64, "segmentation.lraspp_mobilenet_v3_large", weights_backbone=None),
    Net("resnet18_fpn", "torchvision", _pyramid, image(96), "96 px; the backbone of detectors with its pyramid"),
    Net("r3d_18", "torchvision", _vision("video.r3d_18", weights=None), {"x": Input((1, 3, 4, 32, 32))}, "4 frames of 32 px"),
    Net("s3d", "torchvision", _vision("video.s3d", weights=None), {"x": Input((1, 3, 16, 224, 224))}, "16 frames"),
    Net("swin3d_t", "torchvision", _vision("video.swin3d_t", weights=None), {"x": Input((1, 3, 4, 64, 64))}, "4 frames of 64 px"),
    Net("raft_small", "torchvision", lambda: _vision("optical_flow.raft_small", weights=None)(),
        {"image1": Input((1, 3, 128, 128)), "image2": Input((1, 3, 128, 128))}, "128 px"),
    Net("lstm_tagger", "torch", _tagger, {"x": Input((2, 9), 200)}),
    Net("gru_translator", "torch", _translator, {"x": Input((2, 9), 200)}),
]
