"""Writes what torch itself gives for its operators: graphs as torch prints them, inputs and outputs.

    python tests/oracle/record_torch.py cases.npz [--seed 0] [--samples 6] [--only NAME,NAME]

The samples (shapes, element types, arguments) are those of torch's own operator tests, and special values beside them; each is traced, so that
the text is what a user prints. Needs torch; everything that reads the file does not.
"""
from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import sys
import types
import unittest
import warnings
from typing import Any

import numpy as np

SKIPPED = re.compile(
    r"rand|bernoulli|multinomial|normal|cauchy|exponential$|geometric|uniform|dropout|empty|rrelu|jiterator|sparse|hash_tensor|resize"
    r"|fractional|unique|_segment|to_padded|svd|pca|stft|istft|_scaled|_flash|_efficient|backward|masked\.|fft|_refs|signal|eig|lu|qr|geqrf|ormqr"
    r"|lstsq|pinv|ldl|householder|cond|matrix_rank|ctc_loss|histogram|nonzero_static|item|cdouble|cfloat|chalf|igamma|hermite|chebyshev|legendre"
    r"|laguerre|bessel|airy|zeta|fft|linear_cross_entropy|as_strided|broadcast_shapes|equal|allclose|_aa|tensorinv|tensorsolve|matrix_exp|expm$",
)
"""Random ones, those outside the families that irscope runs, and those that trace to no operator."""


def operator_samples() -> Any:
    """torch's table of operators with samples. Its test helpers want a package that only its own test runner needs."""
    if "expecttest" not in sys.modules:
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase  # type: ignore[attr-defined]
        sys.modules["expecttest"] = stand_in
    from torch.testing._internal.common_methods_invocations import op_db
    return op_db


def tensors_in(value: Any, found: list[Any]) -> Any:
    """``value`` with numbered places for its tensors, which are appended to ``found``."""
    import torch
    if isinstance(value, torch.Tensor):
        found.append(value.detach().clone().resolve_conj().resolve_neg())
        return _Place(len(found) - 1)
    if isinstance(value, list | tuple):
        return type(value)(tensors_in(v, found) for v in value) if not hasattr(value, "_fields") else tuple(tensors_in(v, found) for v in value)
    if isinstance(value, dict):
        return {k: tensors_in(v, found) for k, v in value.items()}
    return value


class _Place:
    def __init__(self, index: int) -> None:
        self.index = index


def filled(value: Any, tensors: Any) -> Any:
    """The inverse of :func:`tensors_in`."""
    if isinstance(value, _Place):
        return tensors[value.index]
    if isinstance(value, list | tuple):
        return type(value)(filled(v, tensors) for v in value)
    if isinstance(value, dict):
        return {k: filled(v, tensors) for k, v in value.items()}
    return value


def flat(value: Any) -> list[Any]:
    """The tensors of an output, in order."""
    import torch
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [t for v in value for t in flat(v)]
    return []


def stored(tensor: Any) -> tuple[np.ndarray[Any, Any], str]:
    """An array for .npz, and the name of its element type where numpy has none."""
    import torch
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(np.uint16), "bfloat16"
    return tensor.numpy(), ""


def traced(function: Any, arguments: Any) -> tuple[str, list[Any], list[Any]] | None:
    """The text of a call, its tensors, and what it gives; None when torch refuses it."""
    import torch
    tensors: list[Any] = []
    places = tensors_in(arguments, tensors)
    if not tensors:
        return None

    def call(*given: Any) -> Any:
        args, kwargs = filled(places, given)
        out = function(*args, **kwargs)
        return tuple(flat(out)) if not isinstance(out, torch.Tensor) else out
    try:
        with torch.no_grad():
            expected = flat(call(*[t.clone() for t in tensors]))
            graph = torch.jit.trace(call, tuple(t.clone() for t in tensors), check_trace=False, strict=False).inlined_graph
    except Exception:
        return None
    if not expected:
        return None
    return str(graph), tensors, expected


SPECIAL = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 1e-30, 1e30, 88.0, -104.0, 3.0, -7.25]


def special_calls(operator: Any) -> Any:
    """Special values, and operands of different types and ranks, for elementwise operators."""
    import torch
    from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo
    values = torch.tensor(SPECIAL)
    whole = torch.tensor([[-7, 3, 0], [2, -1, 9]])
    flags = torch.tensor([[True, False, True]])
    if operator.name in ("byte", "char", "short", "int", "long"):
        return  # what becomes of NaN is the processor's choice
    if isinstance(operator, UnaryUfuncInfo):
        for x in (values, whole, flags, values[5], values[:0], torch.tensor(SPECIAL, dtype=torch.float64)):
            yield (x,), {}
    elif isinstance(operator, BinaryUfuncInfo):
        yield (values[:, None], values[None, :]), {}
        others = [values[3:9], whole, flags, torch.tensor(2.5, dtype=torch.float64), torch.tensor(3), torch.tensor(True), whole.to(torch.uint8),
                  whole.to(torch.int8), values[5:8].to(torch.bfloat16), values[:0], whole.to(torch.int16), torch.tensor([[1.5], [2]], dtype=torch.float64)]
        for a, b in itertools.product(others, others):
            yield (a, b), {}
        for a, b in itertools.product(others, [2, -3, 0.5, True]):
            yield (a, b), {}


def cases(seed: int, samples: int, only: set[str]) -> Any:
    """Name, text, tensors and outputs, one after the other."""
    import torch
    dtypes = [torch.float32, torch.int64, torch.bool, torch.float64, torch.uint8, torch.int32, torch.bfloat16, torch.complex64]
    for operator in operator_samples():
        if SKIPPED.search(operator.name) or (only and operator.name not in only):
            continue
        chooser = random.Random(f"{seed} {operator.name} {operator.variant_test_name}")
        ways = [operator.op]
        if operator.inplace_variant is not None:
            ways.append(operator.inplace_variant)
        for dtype in dtypes:
            if dtype not in operator.dtypes:
                continue
            torch.manual_seed(seed)
            try:
                found = list(itertools.islice(operator.sample_inputs("cpu", dtype), 200))
            except Exception:
                continue
            n = samples if dtype is torch.float32 else max(2, samples // 3)
            for sample in chooser.sample(found, min(n, len(found))):
                for way in ways:
                    made = traced(way, ((sample.input, *sample.args), sample.kwargs))
                    if made is not None:
                        yield operator.name, *made
        calls = list(special_calls(operator))
        for args, kwargs in chooser.sample(calls, min(4 * samples, len(calls))):
            made = traced(operator.op, (args, kwargs))
            if made is not None:
                yield operator.name, *made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=6)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    arrays: dict[str, Any] = {}
    table = []
    known: set[str] = set()
    for name, text, inputs, outputs in cases(options.seed, options.samples, set(options.only.split(",")) - {""}):
        text = re.sub(r" # .*", "", text)
        if text in known or any(t.numel() > 4000 or t.dtype in _ODD() for t in [*inputs, *outputs]):
            continue
        known.add(text)
        entry: dict[str, Any] = {"name": name, "text": text}
        for kind, tensors in (("in", inputs), ("out", outputs)):
            for i, tensor in enumerate(tensors):
                key = f"{len(table)}.{kind}{i}"
                arrays[key], dtype = stored(tensor)
                if dtype:
                    entry.setdefault("dtypes", {})[f"{kind}{i}"] = dtype
            entry[kind] = len(tensors)
        table.append(entry)
    np.savez_compressed(options.file, cases=np.frombuffer(json.dumps(table).encode(), np.uint8), **arrays)
    print(f"{len(table)} cases of {len({e['name'] for e in table})} functions", file=sys.stderr)


def _ODD() -> set[Any]:
    import torch
    return {torch.uint16, torch.uint32, torch.uint64, torch.complex32, torch.float8_e4m3fn, torch.float8_e5m2}


if __name__ == "__main__":
    main()
