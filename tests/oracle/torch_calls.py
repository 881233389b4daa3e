"""Calls of torch that its own operator tests do not make: recurrent layers, packed sequences, windows, fast paths, and decompositions
in forms that do not depend on the signs of vectors."""
from __future__ import annotations

import itertools
from typing import Any


def written_calls(seed: int) -> Any:
    """Operators that hardly a trace prints: (name, arguments)."""
    import torch
    g = torch.Generator().manual_seed(seed)

    def r(*shape: int) -> Any:
        return torch.randn(shape, generator=g)

    def flags(*shape: int) -> Any:
        made = torch.rand(shape, generator=g) > 0.6
        made[..., 0] = False
        return made
    x, qkv = r(2, 4, 6), (r(18, 6), r(18), r(6, 6), r(6))
    for mask, kind in ((None, None), (flags(4, 4), 0), (flags(2, 4), 1)):
        for average in (True, False):
            yield "_native_multi_head_attention", (x, x, x, 6, 2, *qkv, mask, True, average, kind)
        for gelu, first in ((True, False), (False, True)):
            rest = (r(6), r(6), r(6), r(6), r(5, 6), r(5), r(6, 5), r(6))
            yield "_transformer_encoder_layer_fwd", (x, 6, 2, *qkv, gelu, first, 1e-5, *rest, mask, kind)
    image = r(4, 6)
    for axis in (0, 1):
        n = image.shape[axis]
        scales = torch.rand(n, generator=g) * 0.1 + 0.01
        zeros = torch.randint(0, 5, (n,), generator=g).to(torch.int32)
        yield "fake_quantize_per_channel_affine", (image, scales, zeros, axis, 0, 10)
        yield "fake_quantize_per_channel_affine_cachemask", (image, scales, zeros, axis, -3, 10)
    yield "fake_quantize_per_tensor_affine", (image, 0.05, 3, 0, 15)
    yield "fake_quantize_per_tensor_affine", (image, torch.tensor(0.05), torch.tensor(3, dtype=torch.int32), 0, 15)
    yield "fake_quantize_per_tensor_affine_cachemask", (image, 0.05, 3, 0, 15)
    yield "_fft_c2c", (torch.complex(r(3, 4), r(3, 4)), [0, 1], 1, False)
    yield "_fft_r2c", (r(3, 5), [0, 1], 2, True)
    yield "_fft_r2c", (r(3, 5), [1], 0, False)
    yield "_fft_c2r", (torch.complex(r(3, 4), r(3, 4)), [0, 1], 2, 7)
    yield "_upsample_lanczos2d_aa", (r(1, 2, 7, 9), [4, 5], False)
    for name in ("_prelu_kernel",):
        yield name, (r(3, 4), r(1))
    for name in ("_is_all_true", "_is_any_true"):
        yield name, (r(3, 4) > 0,)
    yield "_stack", ([r(2, 3), r(2, 3)], 1)
    yield "subtract", (r(2, 3), r(3))
    yield "native_channel_shuffle", (r(1, 6, 2), 3)


def composed_calls(seed: int) -> Any:
    """(name, function of tensors, tensors): traced as they are called."""
    import torch
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
    g = torch.Generator().manual_seed(seed)

    def r(*shape: int, dtype: Any = torch.float32) -> Any:
        return torch.randn(shape, generator=g, dtype=dtype)
    for dtype in (torch.float32, torch.float64, torch.complex64):
        for shape in ((4, 4), (2, 3, 5), (5, 3)):
            a = r(*shape, dtype=dtype)
            yield "svd", lambda a: _product(*torch.linalg.svd(a, full_matrices=False)), (a,)
            yield "svd_full", lambda a: torch.linalg.svd(a)[0].abs()[..., :2].sum(-2) * 0 + torch.linalg.svd(a)[1][..., :2], (a,)
            yield "svd_old", lambda a: torch.svd(a)[1], (a,)
        a = r(2, 4, 4, dtype=dtype)
        yield "eigh", lambda a: _rebuilt(*torch.linalg.eigh(a + a.mH)), (a,)
        yield "eigh_upper", lambda a: _rebuilt(*torch.linalg.eigh(a, UPLO="U")), (a,)
        yield "eig", lambda a: _rebuilt_by_inverse(*torch.linalg.eig(a)), (a,)
        yield "eigvals", lambda a: torch.linalg.eigvals(a).abs().sort().values, (a,)
    for n, periodic in itertools.product((0, 1, 2, 7, 8), (True, False)):
        yield "windows", lambda x, n=n, periodic=periodic: (
            *(getattr(torch, f"{name}_window")(n, periodic) + x for name in ("bartlett", "blackman", "hann", "hamming", "kaiser")),
            torch.kaiser_window(n, periodic, 7.5) + x, torch.hamming_window(n, periodic, 0.6, 0.3) + x), (torch.zeros(()),)
    signal, window = r(2, 50), torch.hann_window(12)
    for center, hop in itertools.product((False, True), (None, 5, 16)):
        yield "stft", lambda x, w, center=center, hop=hop: torch.stft(x, 16, hop, 12, w, center, normalized=center, return_complex=True), \
            (signal, window)
    yield "stft", lambda x: torch.stft(x, 8, return_complex=True), (r(3, 40, dtype=torch.complex64),)
    spectrum, whole = torch.stft(signal, 16, 4, 16, torch.hann_window(16), return_complex=True), torch.hann_window(16)
    for length in (None, 40, 60):
        yield "istft", lambda s, w, length=length: torch.istft(s, 16, 4, 16, w, length=length), (spectrum, whole)
    yield "istft", lambda s: torch.istft(s, 16, 4, 16, torch.ones(16), center=False, normalized=True), (spectrum,)
    for names in (("lstm", 4, 2), ("lstm", 4, 0), ("gru", 3, 0), ("rnn_tanh", 1, 0), ("rnn_relu", 1, 0)):
        yield from _recurrent(r, *names, pack_padded_sequence, pad_packed_sequence)
    yield "pad_sequence", lambda a, b: (pad_sequence([a, b], True, -1.0), pad_sequence([a, b], False, 2.0, "left")), (r(3, 2), r(5, 2))
    x = torch.randint(0, 4, (4, 6), generator=g)
    for dtype, dim in itertools.product((torch.float32, torch.int64, torch.bool), (None, 0, 1)):
        y = x.to(dtype) if dim is None else x[:, :2].repeat(2, 2).to(dtype)
        yield "unique", lambda y, dim=dim: torch.unique(y, return_inverse=True, return_counts=True, dim=dim), (y,)
        yield "unique_consecutive", lambda y, dim=dim: torch.unique_consecutive(y, return_inverse=True, return_counts=True, dim=dim), (y,)
    for mode, size in itertools.product(("bilinear", "bicubic"), ((3, 4), (14, 5), (1, 1))):
        yield "antialias", lambda x, mode=mode, size=size: torch.nn.functional.interpolate(x, size, mode=mode, antialias=True), (r(1, 2, 7, 9),)
        image = torch.randint(0, 256, (1, 2, 7, 9), generator=g, dtype=torch.uint8)
        yield "antialias", lambda x, mode=mode, size=size: torch.nn.functional.interpolate(x, size, mode=mode, antialias=True), (image,)
    yield "int_repr", lambda x: torch.quantize_per_tensor(x, 0.1, 5, torch.quint8).int_repr(), (r(3, 4),)
    yield "rrelu", torch.nn.functional.rrelu, (r(3, 4),)
    for flat in (False, True):
        texts = torch.randint(1, 5, (7,) if flat else (3, 4), generator=g)
        lengths = (torch.tensor([12, 10, 9]), torch.tensor([4, 3, 0]))
        for reduction in ("none", "mean", "sum"):
            yield "ctc", lambda a, b, c, d, reduction=reduction: torch.nn.functional.ctc_loss(a, b, c, d, reduction=reduction), \
                (r(12, 3, 5).log_softmax(2), texts, *lengths)


def _product(u: Any, s: Any, vh: Any) -> Any:
    return (u * s.unsqueeze(-2)) @ vh, s


def _rebuilt(values: Any, vectors: Any) -> Any:
    return (vectors * values.unsqueeze(-2)) @ vectors.mH, values


def _rebuilt_by_inverse(values: Any, vectors: Any) -> Any:
    import torch
    return (vectors * values.unsqueeze(-2)) @ torch.linalg.inv(vectors)


def _recurrent(r: Any, name: str, gates: int, projected: int, pack: Any, pad: Any) -> Any:
    """Layers whole and over packed sequences, in one and two directions."""
    import torch
    run = getattr(torch._VF, name)
    size, hidden = 3, 4
    out = projected or hidden
    for layers, both, biases in ((1, False, True), (2, True, False)):
        parameters = []
        for layer in range(layers):
            for _ in range(1 + both):
                width = size if layer == 0 else out * (1 + both)
                parameters += [r(gates * hidden, width), r(gates * hidden, out)] + ([r(gates * hidden), r(gates * hidden)] if biases else [])
                parameters += [r(projected, hidden)] if projected else []
        states = [r(layers * (1 + both), 3, out)] + ([r(layers * (1 + both), 3, hidden)] if name == "lstm" else [])
        n = len(states)

        def state(given: Any, n: int = n) -> Any:
            return list(given[:n]) if n > 1 else given[0]

        def plain(x: Any, *given: Any, n: int = n, layers: int = layers, both: bool = both, biases: bool = biases) -> Any:
            return run(x, state(given, n), list(given[n:]), biases, layers, 0.0, False, both, False)

        def packed(x: Any, lengths: Any, *given: Any, n: int = n, layers: int = layers, both: bool = both, biases: bool = biases) -> Any:
            rows = pack(x, lengths, enforce_sorted=False)
            y, *ends = run(rows.data, rows.batch_sizes, state(given, n), list(given[n:]), biases, layers, 0.0, False, both)
            wide, found = pad(torch.nn.utils.rnn.PackedSequence(y, rows.batch_sizes, rows.sorted_indices, rows.unsorted_indices),
                              padding_value=-1.5, total_length=7)
            return wide, found, *ends
        yield name, plain, (r(5, 3, size), *states, *parameters)
        yield f"{name}_packed", packed, (r(5, 3, size), torch.tensor([2, 5, 1]), *states, *parameters)
