"""Writes what XLA and torch give for the programs of this folder.

    python tests/regressions/record.py                            values.npz
    python tests/regressions/record.py --functions FILE.npz       texts and values of the functions of tests/oracle/regressions.py

Needs jax and torch. Relay has no peer: its programs are computed as a convolution and by the definition of their operator.
"""
from __future__ import annotations

import argparse
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.oracle.regressions import jax_functions, torch_functions
from tests.programs.peers import PeerRefused, array_of, by_xla, tensor_of
from tests.regressions.programs import VALUES, Array, Program, of_files, write

CLASS = re.compile(r"  %(\S+) : __torch__\S* = prim::GetAttr\[name=\"(\w+)\"\]\(%(\S+)\)\n")
WEIGHT = re.compile(r"  %(\S+) : Tensor = prim::GetAttr\[name=\"(\w+)\"\]\(%(\S+)\)\n")
NUMBER = re.compile(r"  %(\S+) : (\w+)\([^\n]*\) = prim::Constant\[value=\{(\S+)\}\]\(\)\n")
FUNCTION = re.compile(r"  %\S+ : Function = [^\n]*\n")


def by_torch(text: str, arrays: list[Array], weights: Path | None) -> list[Array]:
    """What torch gives for a text as it prints it. Weights and tensors that are constants become inputs: its parser takes neither."""
    import torch

    state = torch.load(weights, weights_only=True) if weights else {}
    head, body = text.split("):\n", 1)
    objects = re.match(r"graph\(%(\S+) : __torch__", head)
    paths = {objects[1]: ""} if objects else {}
    given: dict[str, Any] = {}
    for name, attribute, of in CLASS.findall(body):
        paths[name] = f"{paths[of]}{attribute}."
    for name, attribute, of in WEIGHT.findall(body):
        given[name] = state[paths[of] + attribute]
    for name, kind, number in NUMBER.findall(body):
        given[name] = torch.tensor(float(number), dtype=getattr(torch, kind.lower())) if kind != "Long" else torch.tensor(int(number))
    for pattern in (CLASS, WEIGHT, NUMBER, FUNCTION):
        body = pattern.sub("", body)
    body = re.sub(r"(?m)^( +) = (?=prim|aten)", r"\1", body)  # statements without a result, as the parser wants them
    params = [f"%{name} : Tensor" for name in given]
    head = re.sub(r"graph\(%\S+ : __torch__[^,)]*,?\s*", "graph(", head)
    graph = torch._C.parse_ir(head + "".join(", " + p for p in params) + "):\n" + body, False)
    tensors = [int(a) if a.dtype == np.int64 and not a.shape else tensor_of(a) for a in arrays]
    with torch.no_grad():
        out = torch._C._create_function_from_graph("main", graph)(*tensors, *given.values())
    return [array_of(t) for t in (out if isinstance(out, list | tuple) else [out])]


def by_definition(name: str, arrays: list[Array]) -> list[Array]:
    """Relay's programs, products of 8-bit floats, which XLA's CPU compiler does not fuse, and logarithms of denormals, which are zeros in
    HLO, though XLA's code for vectors of seven gives something else (docs/accuracy.md)."""
    if name == "log_of_denormals":
        with np.errstate(divide="ignore"):
            return [np.log(np.where(np.abs(arrays[0]) < np.finfo(np.float32).tiny, np.float32(0), arrays[0]))]
    if name == "product_of_33_columns_f8":
        return [(arrays[0].astype(np.float32) @ arrays[1].astype(np.float32)).astype(ml_dtypes.bfloat16)]
    if name == "upsampling_bilinear":
        return [_twice_as_large(_twice_as_large(arrays[0], 2), 3)]
    assert name == "convolution_with_itself_sliced"
    n, k = arrays[1].shape[0], arrays[1].shape[3]
    shape, window = f"f32[{n},{n},{k},{k}]", "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
    text = f"HloModule m\nENTRY e {{\n p = {shape} parameter(0)\n ROOT c = {shape} convolution(p, p), {window}\n}}\n"
    return [by_xla(text, [arrays[1]])[0][:1, :, :, 16:33]]


def _twice_as_large(x: Array, axis: int) -> Array:
    """Linear along an axis, result pixel i at i / 2 of the image (TVM's asymmetric coordinates), held at the last pixel."""
    at = np.arange(2 * x.shape[axis]) / 2
    low = np.floor(at).astype(int)
    high = np.minimum(low + 1, x.shape[axis] - 1)
    shape = [-1 if d == axis else 1 for d in range(x.ndim)]
    part = (at - low).astype(np.float32).reshape(shape)
    made: Array = x.take(low, axis) * (1 - part) + x.take(high, axis) * part
    return made


def results(program: Program) -> list[Array]:
    """The right values of one program."""
    arrays = list(program.inputs().values())
    if program.suffix == ".txt":
        return by_torch(program.text, arrays, program.weights)
    if program.suffix == ".relay" or program.name == "log_of_denormals":
        return by_definition(program.name, arrays)
    try:
        return by_xla(program.text, arrays)
    except PeerRefused:
        return by_definition(program.name, arrays)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--functions", default="", metavar="FILE")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.functions:
        made = [*jax_functions(), *torch_functions()]
        write(options.functions, [p for p, _ in made], [values for _, values in made], True)
        print(f"{len(made)} functions")
    else:
        programs = list(of_files())
        write(VALUES, programs, [results(p) for p in programs], False)
        print(f"{len(programs)} programs, {VALUES.stat().st_size} bytes")


if __name__ == "__main__":
    main()
