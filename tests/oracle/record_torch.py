"""Writes what torch itself gives for its operators: graphs as torch prints them, inputs and outputs.

    python tests/oracle/record_torch.py cases.npz [--seed 0] [--samples 6] [--only NAME,NAME]     (direct: the calls listed by hand)

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
from pathlib import Path
from typing import Any

import numpy as np

SKIPPED = re.compile(
    r"rand|bernoulli|multinomial|normal|cauchy|exponential$|geometric|uniform|dropout|empty|jiterator|sparse|hash_tensor|resize"
    r"|fractional|_segment|to_padded|pca|_scaled|_flash|_efficient|backward|masked\.|_refs|(^|[._])(svd|eig|eigh|eigvals)$"
    r"|ldl|histogram|item|cdouble|cfloat|chalf|igamma|hermite|chebyshev|legendre"
    r"|laguerre|airy|linear_cross_entropy|as_strided|broadcast_shapes|equal",
)
"""Random ones, those outside the families that irscope runs, those that trace to no operator, and those whose vectors have no sign."""
INEXACT = re.compile(r"bessel_[jy].*float64|matrix_exp.*bfloat16")
"""Where torch itself is far from the true value: Bessel functions of float64 by 1e-7, matrix exponentials of bfloat16 are NaN."""
IN_DOUBLE = re.compile(r"matrix_exp|polygamma")
"""Where torch is far from the true value in single precision alone: what it gives for the same numbers in double precision is recorded,
rounded. It sums the series of a matrix exponential in float32, where large terms cancel, and reflects the trigamma function of negative
numbers by a float32 sine."""


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


def doubled(function: Any, tensors: list[Any]) -> list[Any]:
    """What a call gives for the same numbers in double precision, rounded to the element types that it gives for these."""
    import torch
    wider = {torch.float32: torch.float64, torch.complex64: torch.complex128}
    plain = flat(function(*[t.clone() for t in tensors]))
    wide = flat(function(*[t.to(wider.get(t.dtype, t.dtype), copy=True) for t in tensors]))
    return [w.to(p.dtype) for w, p in zip(wide, plain, strict=True)]


def traced(function: Any, arguments: Any, in_double: bool = False) -> tuple[str, list[Any], list[Any]] | None:
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
            expected = doubled(call, tensors) if in_double else flat(call(*[t.clone() for t in tensors]))
            graph = torch.jit.trace(call, tuple(t.clone() for t in tensors), check_trace=False, strict=False).inlined_graph
    except Exception:
        return None
    if not expected:
        return None
    return str(graph), tensors, expected


def written(name: str, arguments: Any) -> tuple[str, list[Any], list[Any]]:
    """The text of a call by schema, its tensors, and what torch.ops gives: for operators that no trace prints."""
    import torch
    tensors: list[Any] = []
    lines: list[str] = []

    def value(v: Any) -> str:
        if isinstance(v, torch.Tensor):
            tensors.append(v)
            return f"%x{len(tensors) - 1}"
        if isinstance(v, list) and v and isinstance(v[0], torch.Tensor):
            inner = ", ".join(value(part) for part in v)
            line = f"Tensor[] = prim::ListConstruct({inner})"
        elif v is None:
            line = "NoneType = prim::Constant()"
        elif isinstance(v, str):
            line = f'str = prim::Constant[value="{v}"]()'
        elif isinstance(v, list):
            line = f"{'float' if v and isinstance(v[0], float) else 'int'}[] = prim::Constant[value={v}]()"
        else:
            line = f"{type(v).__name__} = prim::Constant[value={int(v) if isinstance(v, bool) else v!r}]()"
        lines.append(f"  %c{len(lines)} : {line}\n")
        return f"%c{len(lines) - 1}"
    operands = ", ".join(value(v) for v in arguments)
    tensors = [x.clone() for x in tensors]
    result = getattr(torch.ops.aten, name)(*arguments)
    outputs = flat(result)
    inputs = ",\n      ".join(f"%x{i} : Tensor" for i in range(len(tensors)))
    if isinstance(result, list):
        names = ", ".join(f"%r{i} : Tensor" for i in range(len(outputs)))
        call = f"  %list : Tensor[] = aten::{name}({operands})\n  {names} = prim::ListUnpack(%list)\n"
    else:
        names = ", ".join(f"%r{i} : Tensor" for i in range(len(outputs)))
        call = f"  {names} = aten::{name}({operands})\n"
    returned = ", ".join(f"%r{i}" for i in range(len(outputs)))
    return f"graph({inputs}):\n{''.join(lines)}{call}  return ({returned})\n", tensors, outputs


def direct_calls(seed: int) -> Any:
    """Operators whose names only scripted, frozen or older graphs hold: (name, arguments)."""
    import torch
    g = torch.Generator().manual_seed(seed)
    pick = random.Random(seed)

    def r(*shape: int) -> Any:
        return torch.randn(shape, generator=g)

    def ints(low: int, high: int, *shape: int) -> Any:
        return torch.randint(low, high, shape, generator=g)
    for n in (1, 2, 3):
        for _ in range(3):
            groups, kernel = pick.choice([1, 2]), [pick.randint(1, 3) for _ in range(n)]
            size = [pick.randint(4, 7) for _ in range(n)]
            x, w, b = r(2, 4, *size), r(6, 4 // groups, *kernel), pick.choice([None, r(6)])
            stride, dilation = [pick.randint(1, 2) for _ in range(n)], [pick.randint(1, 2) for _ in range(n)]
            padding = [pick.randint(0, 2) for _ in range(n)]
            yield f"conv{n}d", (x, w, b, stride, padding, dilation, groups)
            yield f"conv{n}d", (x, w, b, [1] * n, pick.choice(["same", "valid"]), dilation, groups)
            back = r(4, 6 // groups, *kernel)
            extra = [pick.randint(0, s - 1) for s in stride]
            bias = None if b is None else r(6)
            if all(e < max(s, d) for e, s, d in zip(extra, stride, dilation)):
                yield f"conv_transpose{n}d", (x, back, bias, stride, padding, extra, groups, dilation)
                yield "convolution", (x, back, bias, stride, padding, dilation, True, extra, groups)
    for gates, name in ((4, "lstm"), (3, "gru"), (1, "rnn_tanh"), (1, "rnn_relu")):
        for layers, both, first, biases in ((1, False, False, True), (2, True, True, True), (1, True, False, False)):
            h, i = 3, 4
            parameters = []
            for layer in range(layers):
                for _ in range(1 + both):
                    width = i if layer == 0 else h * (1 + both)
                    parameters += [r(gates * h, width), r(gates * h, h)] + ([r(gates * h), r(gates * h)] if biases else [])
            x, state = r(2, 5, i) if first else r(5, 2, i), r(layers * (1 + both), 2, h)
            hidden = [state, r(layers * (1 + both), 2, h)] if name == "lstm" else state
            yield name, (x, hidden, parameters, biases, layers, 0.0, False, both, first)
        cell = (r(2, 4), [r(2, 3), r(2, 3)] if name == "lstm" else r(2, 3), r(gates * 3, 4), r(gates * 3, 3), r(gates * 3), r(gates * 3))
        yield f"{name}_cell", cell
    for name in ("__and__", "__or__", "__xor__", "__lshift__", "__rshift__"):
        yield name, (ints(-9, 9, 2, 3), ints(0, 5, 3))
    for name in ("Byte", "Int", "Long", "Half", "Float", "Double"):
        yield f"_cast_{name}", (r(3, 2).abs() * 3, False)
    for name in ("arccos", "arcsin", "arctan", "arctanh", "arccosh", "arcsinh"):
        yield name, (r(3, 3).abs(),)
    for name in ("absolute", "negative", "fix", "adjoint", "detach_copy", "lift_fresh_copy", "square", "alias", "to_dense", "det", "inverse",
                 "special_erf", "special_erfc", "special_exp2", "special_expit", "special_expm1", "special_psi", "special_gammaln", "special_i0",
                 "nonzero_numpy", "slogdet"):
        yield name, (r(3, 3),)
    for name in ("greater", "less", "less_equal", "greater_equal", "not_equal", "multiply", "divide", "true_divide", "arctan2"):
        yield name, (r(2, 3), r(3))
    for n, shape in ((1, (5,)), (2, (5, 6)), (3, (4, 5, 6))):
        x = r(2, 3, *shape)
        pads = [pick.randint(0, 3) for _ in range(2 * n)]
        yield f"reflection_pad{n}d", (x, pads)
        yield f"replication_pad{n}d", (x, pads)
        yield f"_adaptive_avg_pool{n}d" if n > 1 else "adaptive_avg_pool1d", (x, [pick.randint(1, 4) for _ in range(n)])
        for mode in ("nearest", "_nearest_exact"):
            yield (f"upsample_nearest{n}d" if mode == "nearest" else f"_upsample_nearest_exact{n}d"), (x, [s + 3 for s in shape])
    yield "_softmax", (r(3, 4), 1, False)
    yield "_log_softmax", (r(3, 4), 0, False)
    yield "_weight_norm", (r(4, 3), r(4, 1), 0)
    yield "_unsafe_view", (r(2, 6), [3, 4])
    yield "_index_put_impl_", (r(4, 3), [ints(0, 4, 5)], r(5, 3), True, False)
    yield "affine_grid_generator", (r(2, 2, 3), [2, 3, 4, 5], bool(seed % 2))
    yield "chain_matmul", ([r(2, 3), r(3, 4), r(4, 2)],)
    yield "linalg_multi_dot", ([r(2, 3), r(3, 4), r(4)],)
    yield "col2im", (r(2, 12, 12), [4, 5], [2, 2], [1, 1], [0, 0], [1, 1])
    yield "im2col", (r(2, 3, 5, 6), [2, 3], [1, 2], [1, 0], [2, 1])
    for name in ("concat", "concatenate"):
        yield name, ([r(2, 3), ints(0, 5, 2, 2)], 1)
    yield "column_stack", ([r(3), r(3, 2)],)
    yield "kron", (r(2, 3), r(3, 2))
    yield "ger", (r(3), r(4))
    yield "clip", (r(3, 4), -0.5, 0.5)
    yield "frobenius_norm", (r(3, 4), [1], True)
    yield "linalg_matmul", (r(2, 3, 4), r(4, 2))
    yield "matrix_power", (r(3, 3), 5)
    yield "nll_loss", (r(4, 3), ints(0, 3, 4), r(3).abs(), 1, -100)
    yield "nll_loss2d", (r(2, 3, 2, 2), ints(0, 3, 2, 2, 2), None, 0, -100)
    yield "swapaxes", (r(2, 3, 4), 0, 2)
    yield "moveaxis", (r(2, 3, 4), 0, -1)
    yield "type_as", (r(2, 3), ints(0, 3, 2))
    yield "slice_copy", (r(5, 3), 0, 1, 5, 2)
    yield "select_copy", (r(5, 3), 0, -2)
    yield "split_copy", (r(5, 3), 2, 0)
    yield "unsafe_split_with_sizes", (r(5, 3), [1, 4], 0)
    yield "special_zeta", (r(4).abs() + 1.5, r(4).abs() + 0.5)
    yield "special_logit", (torch.rand(4, generator=g), 1e-3)
    yield "vander", (r(4), 3, False)
    yield "_native_batch_norm_legit_no_training", (r(2, 3, 4), r(3), r(3), r(3), r(3).abs(), 0.1, 1e-5)
    yield "renorm", (r(3, 4), 2.0, 0, 1.0)
    yield "isclose", (r(3), r(3), 0.5, 0.5, False)


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
        in_double = IN_DOUBLE.search(operator.name) is not None
        if SKIPPED.search(operator.name) or (only and operator.name not in only):
            continue
        chooser = random.Random(f"{seed} {operator.name} {operator.variant_test_name}")
        ways = [operator.op]
        if operator.inplace_variant is not None:
            ways.append(operator.inplace_variant)
        for dtype in dtypes:
            if dtype not in operator.dtypes or INEXACT.search(f"{operator.name} {dtype}"):
                continue
            torch.manual_seed(seed)
            try:
                found = list(itertools.islice(operator.sample_inputs("cpu", dtype), 200))
            except Exception:
                continue
            n = samples if dtype is torch.float32 else max(2, samples // 3)
            for sample in chooser.sample(found, min(n, len(found))):
                for way in ways:
                    made = traced(way, ((sample.input, *sample.args), sample.kwargs), in_double)
                    if made is not None:
                        yield operator.name, *made
        calls = [c for c in special_calls(operator) if not INEXACT.search(f"{operator.name} {c[0][0].dtype}")]
        for args, kwargs in chooser.sample(calls, min(4 * samples, len(calls))):
            made = traced(operator.op, (args, kwargs), in_double)
            if made is not None:
                yield operator.name, *made


def direct(seed: int) -> Any:
    """The direct calls with what torch gives, those left out that it refuses."""
    import torch
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tests.oracle.torch_calls import composed_calls, written_calls
    with torch.no_grad():
        for name, arguments in itertools.chain(direct_calls(seed), written_calls(seed)):
            try:
                yield name, *written(name, arguments)
            except (RuntimeError, TypeError, ValueError) as error:
                print(f"torch refuses {name}: {str(error)[:120]}", file=sys.stderr)
    for name, function, tensors in composed_calls(seed):
        made = traced(function, (tensors, {}))
        if made is None:
            print(f"torch refuses {name}", file=sys.stderr)
        else:
            yield name, *made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=6)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    arrays: dict[str, Any] = {}
    table: list[Any] = []
    known: set[str] = set()
    only = set(options.only.split(",")) - {""}
    for name, text, inputs, outputs in itertools.chain(direct(options.seed) if not only or "direct" in only else (), cases(options.seed, options.samples, only)):
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
