"""Writes what torch gives for the operators that its own operators dispatch to, gradients included, in the form of record_torch.py.

    python -m tests.oracle.record_dispatched cases.npz [--seed 0] [--samples 4] [--known FILE] [--calls 3]

The samples of torch's operator tests are run forward and backward under a dispatch mode, which sees every call of an ``aten`` or ``prims``
operator below autograd: those of AOT graphs and of exported programs. ``--known`` is a file with names of operators to leave out. Needs
torch; everything that reads the file does not.
"""
from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.oracle.core_calls import core_calls
from tests.oracle.record_torch import flat, operator_samples, stored

LARGEST = 600
"""Tensors with more elements are not recorded."""
UNDEFINED = {"aten::empty", "aten::empty_like", "aten::new_empty", "aten::empty_strided", "aten::new_empty_strided", "aten::rand",
             "aten::empty_permuted", "aten::resize_"}
"""Their values are not defined."""
Call = tuple[str, list[Any], Any]


class Text:
    """The statements of one call, and the tensors that it takes."""

    def __init__(self) -> None:
        self.tensors: list[Any] = []
        self.lines: list[str] = []

    def value(self, v: Any) -> str:
        """The name of an argument, with its statement where it is not a tensor."""
        import torch
        if isinstance(v, torch.Tensor):
            self.tensors.append(v)
            return f"%x{len(self.tensors) - 1}"
        if isinstance(v, list | tuple) and any(isinstance(part, torch.Tensor) for part in v):
            inner = ", ".join(self.value(part) for part in v)
            line = f"{'Tensor?' if None in [p if p is None else 0 for p in v] else 'Tensor'}[] = prim::ListConstruct({inner})"
        elif v is None:
            line = "NoneType = prim::Constant()"
        elif isinstance(v, str):
            line = f'str = prim::Constant[value="{v}"]()'
        elif isinstance(v, list | tuple):
            kind = "bool" if v and isinstance(v[0], bool) else "float" if v and isinstance(v[0], float) else "int"
            items = [int(p) if isinstance(p, bool) else p for p in v]
            line = f"{kind}[] = prim::Constant[value={items}]()"
        else:
            line = f"{type(v).__name__} = prim::Constant[value={int(v) if isinstance(v, bool) else v!r}]()"
        self.lines.append(f"  %c{len(self.lines)} : {line}\n")
        return f"%c{len(self.lines) - 1}"


def plain(value: Any) -> Any:
    """An argument as a TorchScript constant: element types, layouts and formats are numbers there."""
    import torch
    if isinstance(value, torch.dtype):
        return torch_numbers()[value]
    if isinstance(value, torch.memory_format):
        return [torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d].index(value)
    if isinstance(value, torch.layout):
        return 0
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value


def torch_numbers() -> dict[Any, int]:
    """The numbers of element types, in the order of c10/core/ScalarType.h."""
    import torch
    return {torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5, torch.float32: 6,
            torch.float64: 7, torch.complex64: 9, torch.complex128: 10, torch.bool: 11, torch.bfloat16: 15}


def arranged(op: Any, args: Any, kwargs: Any) -> list[Any]:
    """All arguments of a call in the order of the schema."""
    given = dict(kwargs)
    out = []
    for i, argument in enumerate(op._schema.arguments):
        if i < len(args):
            out.append(args[i])
        else:
            out.append(given.get(argument.name, argument.default_value))
    return out


def written(name: str, arguments: list[Any], result: Any) -> tuple[str, list[Any], list[Any]]:
    """The text of a call, its tensors, and its outputs."""
    text = Text()
    operands = ", ".join(text.value(plain(v)) for v in arguments)
    outputs = flat(result)
    inputs = ",\n      ".join(f"%x{i} : Tensor" for i in range(len(text.tensors)))
    if isinstance(result, list):
        names = ", ".join(f"%r{i} : Tensor" for i in range(len(outputs)))
        call = f"  %list : Tensor[] = {name}({operands})\n  {names} = prim::ListUnpack(%list)\n"
    else:
        parts = result if isinstance(result, tuple) else (result,)
        names = ", ".join(f"%r{i} : Tensor" for i in range(len(parts)))
        call = f"  {names} = {name}({operands})\n"
        outputs = [p for p in parts if p is not None]
        returned = ", ".join(f"%r{i}" for i, p in enumerate(parts) if p is not None)
        return f"graph({inputs}):\n{''.join(text.lines)}{call}  return ({returned})\n", text.tensors, outputs
    returned = ", ".join(f"%r{i}" for i in range(len(outputs)))
    return f"graph({inputs}):\n{''.join(text.lines)}{call}  return ({returned})\n", text.tensors, outputs


def seen_by(function: Any, wanted: Any) -> Iterator[Call]:
    """The calls below autograd of a function, whose names ``wanted`` takes: name, arguments, result."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    found: list[Call] = []

    class Listening(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = func._schema.name
            keep = wanted(name)
            if keep:
                before = copied(arranged(func, args, kwargs or {}))
            result = func(*args, **(kwargs or {}))
            if keep:
                found.append((name, before, copied(result)))
            return result
    with Listening():
        function()
    assert torch is not None
    return iter(found)


def copied(value: Any) -> Any:
    """A value whose tensors are copies."""
    import torch
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, list | tuple):
        return type(value)(copied(v) for v in value) if not hasattr(value, "_fields") else tuple(copied(v) for v in value)
    return value


def sampled(seed: int, samples: int, wanted: Any) -> Iterator[Call]:
    """The calls of all samples of torch's tests, forward and backward."""
    import torch
    for operator in operator_samples():
        chooser = random.Random(f"{seed} {operator.name} {operator.variant_test_name}")
        for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.int64):
            if dtype not in operator.dtypes:
                continue
            grad = operator.supports_autograd and dtype.is_floating_point
            torch.manual_seed(seed)
            try:
                found = list(itertools.islice(operator.sample_inputs("cpu", dtype, requires_grad=grad), 60))
            except Exception:
                continue
            for sample in chooser.sample(found, min(samples if dtype is torch.float32 else 1, len(found))):
                def both(sample: Any = sample, operator: Any = operator, grad: bool = grad) -> None:
                    outputs = flat(operator.op(sample.input, *sample.args, **sample.kwargs))
                    total = [o for o in outputs if o.requires_grad]
                    if grad and total:
                        torch.autograd.backward(total, [torch.randn_like(o) for o in total])
                try:
                    yield from seen_by(both, wanted)
                except Exception:
                    continue


def direct(seed: int) -> Iterator[Call]:
    """The calls that are listed by hand."""
    import torch
    for name, arguments in core_calls(seed):
        space, _, rest = name.partition("::")
        packet, _, overload = rest.partition(".")
        op = getattr(getattr(getattr(torch.ops, space), packet), overload or "default")
        try:
            before = copied(arranged(op, arguments, {}))
            placed = [a for a, declared in zip(arguments, op._schema.arguments) if not declared.kwarg_only]
            named = {declared.name: a for a, declared in zip(arguments, op._schema.arguments) if declared.kwarg_only}
            with torch.no_grad():
                yield f"{space}::{packet}", before, op(*placed, **named)
        except (RuntimeError, TypeError, ValueError) as error:
            print(f"torch refuses {name}: {str(error)[:160]}", file=sys.stderr)


def main() -> None:
    import torch
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--calls", type=int, default=3)
    parser.add_argument("--known", default="")
    parser.add_argument("--direct-only", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    known = set(Path(options.known).read_text().split()) if options.known else set()
    count: Counter[str] = Counter()
    arrays: dict[str, Any] = {}
    table: list[Any] = []
    texts: set[str] = set()

    def wanted(name: str) -> bool:
        return name not in known and name not in UNDEFINED and count[name] < 12 * options.calls

    def wide(call: Call) -> bool:
        tensors = flat([*(a for a in call[1]), call[2]])
        return any(x.numel() > LARGEST or x.dtype not in torch_numbers() or x.layout is not torch.strided for x in tensors)
    calls = direct(options.seed)
    for call in calls if options.direct_only else itertools.chain(calls, sampled(options.seed, options.samples, wanted)):
        name = call[0]
        if wide(call) or not flat(call[2]):
            continue
        kinds = name + " ".join(str(x.dtype) for x in flat(call[1]))
        text, inputs, outputs = written(*call)
        if text in texts or not inputs or (count[kinds] >= options.calls and not options.direct_only):
            continue
        texts.add(text)
        count[kinds] += 1
        count[name] += 1
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
    print(f"{len(table)} cases of {len({e['name'] for e in table})} operators: {sorted({e['name'] for e in table})}", file=sys.stderr)
    assert torch is not None


if __name__ == "__main__":
    main()
