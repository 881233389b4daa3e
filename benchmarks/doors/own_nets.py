"""Modules of torch that are written for the comparison of the doors, each with operators that the zoo's nets do not use."""
from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

Tensor = Any
"""A tensor of torch."""


class Recommender(nn.Module):
    """Bags of items, products of features, and a deep tower beside a wide one."""

    def __init__(self) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(50, 16), nn.EmbeddingBag(80, 16, mode="mean")
        self.deep = nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 1))
        self.wide = nn.Linear(16, 1)

    def forward(self, user: Tensor, history: Tensor) -> Tensor:
        a, b = self.users(user), self.items(history)
        return torch.sigmoid(self.deep(torch.cat([a, b], 1)) + self.wide(a * b)).squeeze(-1)


class GraphNet(nn.Module):
    """Two rounds of messages along edges, summed and averaged by index."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.out = nn.Linear(8, 24), nn.Linear(24, 24), nn.Linear(24, 3)

    def _round(self, x: Tensor, edges: Tensor) -> Tensor:
        total = torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])
        degree = torch.zeros(x.shape[0], 1).index_add(0, edges[1], torch.ones(edges.shape[1], 1))
        return total / degree.clamp(min=1)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        x = F.elu(self._round(self.first(x), edges))
        return F.log_softmax(self.out(F.elu(self._round(self.second(x), edges))), 1)


class UNet(nn.Module):
    """Down by strides, up by transposed convolution and by interpolation, with skips; group norms and SiLU."""

    def __init__(self) -> None:
        super().__init__()
        self.enter, self.down, self.deeper = nn.Conv2d(3, 8, 3, 1, 1), nn.Conv2d(8, 16, 3, 2, 1), nn.Conv2d(16, 16, 3, 2, 1)
        self.norms = nn.ModuleList([nn.GroupNorm(4, n) for n in (8, 16, 16)])
        self.up, self.mix, self.leave = nn.ConvTranspose2d(16, 16, 2, 2), nn.Conv2d(32, 8, 3, 1, 1), nn.Conv2d(16, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = F.silu(self.norms[0](self.enter(x)))
        b = F.silu(self.norms[1](self.down(a)))
        c = F.silu(self.norms[2](self.deeper(b)))
        d = F.silu(self.mix(torch.cat([self.up(c), b], 1)))
        return self.leave(torch.cat([F.interpolate(d, scale_factor=2.0, mode="bilinear", align_corners=False), a], 1))


class Mixture(nn.Module):
    """The two likeliest of four experts for each token; all run, and gates weigh them."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(16, 4)
        self.w1, self.w2 = nn.Parameter(torch.randn(4, 16, 32) / 4), nn.Parameter(torch.randn(4, 32, 16) / 6)

    def forward(self, x: Tensor) -> Tensor:
        score, chosen = torch.topk(self.gate(x), 2, dim=-1)
        gates = torch.zeros(*x.shape[:-1], 4).scatter(-1, chosen, score.softmax(-1))
        hidden = F.gelu(torch.einsum("btd,edh->bteh", x, self.w1), approximate="tanh")
        return x + torch.einsum("bteh,ehd,bte->btd", hidden, self.w2, gates)


class Waves(nn.Module):
    """Causal dilated convolutions with gates, over sound."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv1d(1, 12, 1)
        self.gated = nn.ModuleList([nn.utils.parametrizations.weight_norm(nn.Conv1d(12, 24, 2, dilation=2 ** i)) for i in range(3)])
        self.leave = nn.Conv1d(12, 4, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.enter(x)
        for i, layer in enumerate(self.gated):
            x = x + F.glu(layer(F.pad(x, (2 ** i, 0))), dim=1)
        return self.leave(x)


class Rotary(nn.Module):
    """Causal attention with rotated queries and keys, grouped heads, and an RMS norm written out; a mask lies in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.kv, self.o = nn.Linear(32, 32, bias=False), nn.Linear(32, 32, bias=False), nn.Linear(32, 32, bias=False)
        self.scale = nn.Parameter(torch.rand(32) + 0.5)
        angles = torch.arange(10.0)[:, None] / 100 ** (torch.arange(0, 8, 2) / 8)[None]
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, 1))
        self.register_buffer("sin", torch.cat([angles.sin()] * 2, 1))
        self.register_buffer("mask", torch.ones(10, 10, dtype=torch.bool).tril())

    def _rotate(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat([-b, a], -1) * self.sin

    def forward(self, x: Tensor) -> Tensor:
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale
        q = self._rotate(self.q(y).view(2, 10, 4, 8).transpose(1, 2))
        k, v = self.kv(y).view(2, 10, 2, 2, 8).permute(3, 0, 2, 1, 4).unbind(0)
        k = self._rotate(k).repeat_interleave(2, 1)
        scores = (q @ k.transpose(-2, -1) / math.sqrt(8)).masked_fill(~self.mask, float("-inf"))
        z = scores.softmax(-1) @ v.repeat_interleave(2, 1)
        return x + self.o(z.transpose(1, 2).reshape(2, 10, 32))


class Points(nn.Module):
    """A cloud of points: distances, the nearest neighbours of each, features of edges, and the largest over neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.edge, self.out = nn.Linear(6, 16), nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        square = (x * x).sum(-1)
        distance = square[:, :, None] + square[:, None, :] - 2 * torch.bmm(x, x.transpose(1, 2))
        near = distance.topk(4, dim=-1, largest=False).indices
        neighbours = torch.gather(x[:, None].expand(-1, 20, -1, -1), 2, near[..., None].expand(-1, -1, -1, 3))
        centre = x[:, :, None].expand_as(neighbours)
        features = F.leaky_relu(self.edge(torch.cat([centre, neighbours - centre], -1)), 0.2)
        return self.out(features.amax(2).amax(1))


class Scan(nn.Module):
    """A selective state space, a step at a time, written into a buffer of results in place."""

    def __init__(self) -> None:
        super().__init__()
        self.parts, self.out = nn.Linear(12, 12 + 4 + 4), nn.Linear(12, 12)
        self.decay = nn.Parameter(torch.rand(12, 4))

    def forward(self, x: Tensor) -> Tensor:
        step, b, c = self.parts(x).split([12, 4, 4], -1)
        step = F.softplus(step)
        state, results = torch.zeros(2, 12, 4), torch.empty(2, 6, 12)
        for t in range(6):
            state = state * torch.exp(-step[:, t, :, None] * self.decay) + (step * x)[:, t, :, None] * b[:, t, None, :]
            results[:, t] = (state * c[:, t, None, :]).sum(-1)
        return self.out(results * F.silu(x))


class Half(nn.Module):
    """A block of two norms and a gated product in bfloat16, with the norm in float32."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.gate, self.down = (nn.Linear(a, b, bias=False, dtype=torch.bfloat16) for a, b in ((24, 48), (24, 48), (48, 24)))
        self.norm = nn.LayerNorm(24)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x).to(torch.bfloat16)
        return self.norm(x + self.down(F.silu(self.gate(y)) * self.up(y)).float())


class Histogram(nn.Module):
    """Soft counts of values, cumulated, normalised and looked up again: cumsum, searchsorted-like comparisons, where."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("centres", torch.linspace(-2, 2, 16))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        weight = torch.exp(-4 * (x[..., None] - self.centres) ** 2)
        cumulated = torch.cumsum(weight.mean(1), -1)
        cumulated = cumulated / cumulated[..., -1:]
        place = (x[..., None] > self.centres).sum(-1).clamp(max=15)
        looked = torch.gather(cumulated, 1, place)
        return torch.where(x > 0, looked, looked.sqrt()), cumulated.std(-1)


OWN: dict[str, Any] = {
    "recommender": Recommender, "graph_net": GraphNet, "unet": UNet, "mixture": Mixture, "waves": Waves, "rotary": Rotary,
    "points": Points, "scan": Scan, "half": Half, "histogram": Histogram,
}
"""Each module by its name in the table of nets."""
