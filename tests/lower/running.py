"""What tests of kernel templates share: HLO text compiled here and compared with the reference, and which template took what."""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from irscope.analysis.reference import evaluate, flatten
from irscope.api import load
from irscope.backends.executable import Executable, Port
from irscope.expand import bind_inputs, expand
from irscope.graph import Module, TensorType
from irscope.lower.lowering import lower
from irscope.lower.options import Options
from irscope.lower.program import Program
from irscope.lower.values import leaves, tensor_of


def entry(instructions: str, header: str = "") -> str:
    """A module of one computation."""
    return f"HloModule m\n\n{header}\nENTRY main {{\n" + "\n".join("  " + line.strip() for line in instructions.strip().splitlines()) + "\n}\n"


def drawn(module: Module, seed: int = 0) -> list[np.ndarray]:
    """Arrays for the parameters: small normal numbers, small integers."""
    rng = np.random.default_rng(seed)
    arrays = []
    for param in module.main().params:
        assert isinstance(param.type, TensorType)
        dtype, shape = param.type.dtype, param.type.dims()
        values = rng.standard_normal(shape) if dtype.is_float else rng.integers(-5 if dtype.is_signed else 0, 6, shape)
        arrays.append(np.asarray(values).astype(dtype.numpy()))
    return arrays


def compiled(text: str, fixed: Mapping[int, np.ndarray] | None = None, precision: str = "default") -> tuple[Program, Executable]:
    """The program of a text and its machine code; ``fixed`` gives parameters that are known before the first run."""
    module = load(text).module()
    module = expand(bind_inputs(module, dict(fixed or {})))
    program = lower(module, Options(precision=precision))
    main = module.main()
    ins = [Port(s.name, s.dtype, tensor_of(p).dims()) for s, p in zip(program.inputs, main.params)]
    outs = [Port(s.name, s.dtype, tensor_of(p).dims()) for s, p in zip(program.outputs, leaves(main.result()))]
    return program, Executable.of(program, ins, outs, use_cache=False)


def check(text: str, fixed: tuple[int, ...] = (), tolerance: float = 5e-6, template: str = "", precision: str = "default") -> Program:
    """Compile, run and compare with the reference; errors count relative to the largest value (at least 1). ``template`` must have built a kernel.

    A second run on other inputs finds what is left behind by the first.
    """
    module = load(text).module()
    arrays = drawn(module)
    program, executable = compiled(text, {i: arrays[i] for i in fixed}, precision)
    for seed in (0, 1):
        given = [arrays[i] if i in fixed else a for i, a in enumerate(drawn(module, seed))]
        expected = flatten(evaluate(module.main(), given))
        results = executable(*(a for i, a in enumerate(given) if i not in fixed))
        for result, wanted in zip(results, expected, strict=True):
            scale = max(1.0, float(np.abs(np.asarray(wanted, np.float64)).max(initial=0)))
            error = float(np.abs(np.asarray(result, np.float64) - np.asarray(wanted, np.float64)).max(initial=0))
            assert error <= tolerance * scale, f"{error / scale:.2e} off with seed {seed}:\n{text}"
    if template:
        assert template in {k.schedule.get("template") for k in program.kernels()}, [k.schedule for k in program.kernels()]
    return program
