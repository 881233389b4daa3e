"""Programs that irscope once ran wrong, ran without end or refused: their texts, their inputs, and what XLA or torch gives for them.

``texts/`` has one program a file, with its weights beside it, and ``values.npz`` what they give; ``record.py`` writes it. Two are parts of
nets: ``halo_attention`` is a layer of timm's HaloNet, ``coatnet_block`` a transformer block of its CoAtNet, of 16 channels.
"""
from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import ml_dtypes
import numpy as np

from irscope.api import load
from irscope.backends.comparison import compare
from irscope.graph import NamedType, TensorType
from tests.conftest import Cli
from tests.programs.judge import shared_among_threads

Array = np.ndarray[Any, Any]

TEXTS = Path(__file__).parent / "texts"
VALUES = Path(__file__).with_name("values.npz")
FORMATS = {".hlo": "hlo", ".txt": "torchscript", ".relay": "relay"}
MOST = 2048
"""Elements of an output that are recorded; of a larger one as many, evenly apart."""
MATRIX = np.arange(24, dtype=np.float32).reshape(4, 6) - 7
"""What a TorchScript text gets that does not say what its tensor is, and all programs that write in place."""
DENORMALS = np.array([1e-38, 1e-39, 1.4e-45, 1.1754942e-38, -1e-39, 1, 1.1754944e-38], np.float32)
TRIPS = 7
"""What an input gets that is an integer."""


@dataclass(frozen=True, slots=True)
class Program:
    """A text as a file of its suffix, and the file of its weights."""

    name: str
    suffix: str
    text: str
    weights: Path | None = None

    def inputs(self) -> dict[str, Array]:
        """The arrays that the program gets: the same ones by the same name."""
        found = {}
        for number, param in enumerate(load(self.text, format=FORMATS[self.suffix]).module().main().params):
            if isinstance(param.type, TensorType):
                found[param.name] = _drawn(param.type.dims(), param.type.dtype.numpy(), crc32(f"{self.name}.{number}".encode()))
            elif not (isinstance(param.type, NamedType) and "__torch__" in param.type.name):
                found[param.name] = np.array(TRIPS) if str(param.type) == "int" else MATRIX
        return found

    def wrong(self, cli: Cli, folder: Path, recorded: Mapping[str, Array]) -> str:
        """Run it by the command line with one thread and two, and by the reference; says what is wrong, or nothing."""
        file, given = folder / f"program{self.suffix}", folder / "given.npz"
        file.write_text(self.text, encoding="utf-8")
        np.savez(given, **self.inputs())  # type: ignore[arg-type]
        command = ["compile-and-run", file, "--inputs", given, *(["--weights", self.weights] if self.weights else [])]
        with shared_among_threads():
            one = cli(*command, "--threads", 1, "--check", "--save-outputs", folder / "one.npz")
            two = cli(*command, "--threads", 2, "--save-outputs", folder / "two.npz")
        if one.exit_code or two.exit_code:
            return one.output + two.output
        with np.load(folder / "one.npz") as a, np.load(folder / "two.npz") as b:
            single, double = list(a.values()), list(b.values())
        wanted = [recorded[key] for key in sorted(recorded) if key.rpartition(".")[0] == self.name]
        if len(single) != len(wanted):
            return f"{len(single)} results instead of {len(wanted)}"
        if any(x.tobytes() != y.tobytes() for x, y in zip(single, double, strict=True)):
            return "one and two threads give different bits"
        faults = [compare(f"out{n}", _floats(sampled(x)), _floats(w)).fault for n, (x, w) in enumerate(zip(single, wanted, strict=True))]
        return "; ".join(fault for fault in faults if fault)


def of_files() -> Iterator[Program]:
    """The programs whose texts are files."""
    for path in sorted(TEXTS.iterdir()):
        if path.suffix in FORMATS:
            weights = path.with_suffix(".pt")
            yield Program(path.stem, path.suffix, path.read_text(encoding="utf-8"), weights if weights.exists() else None)


def write(path: str | Path, programs: list[Program], outputs: list[list[Array]], with_texts: bool) -> None:
    """Record what programs give, and their texts where those are no files."""
    values = {f"{p.name}.{n}": sampled(array) for p, arrays in zip(programs, outputs, strict=True) for n, array in enumerate(arrays)}
    if with_texts:
        values["texts"] = np.frombuffer(json.dumps([(p.name, p.suffix, p.text) for p in programs]).encode(), np.uint8)
    np.savez_compressed(path, **values)  # type: ignore[arg-type]


def read(path: str | Path) -> tuple[list[Program], dict[str, Array]]:
    """The inverse of :func:`write`: the programs with texts, and all values."""
    with np.load(path) as file:
        values = dict(file)
    texts = values.pop("texts", None)
    return [Program(*row) for row in json.loads(texts.tobytes())] if texts is not None else [], values


def sampled(array: Array) -> Array:
    """What is recorded of an output; bfloat16 by its bits, as ``--save-outputs`` writes it."""
    if array.dtype == ml_dtypes.bfloat16:
        array = array.view(np.uint16)
    return array if array.size <= MOST else array.reshape(-1)[::array.size // MOST | 1]


def _floats(array: Array) -> Array:
    return array.view(ml_dtypes.bfloat16) if array.dtype == np.uint16 else array


def _drawn(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int) -> Array:
    """Normal numbers or small integers; the arrays above for programs on denormals and for those that write in place."""
    if dtype == np.float32 and shape in (DENORMALS.shape, MATRIX.shape):
        return DENORMALS if shape == DENORMALS.shape else MATRIX
    rng = np.random.default_rng(seed)
    drawn: Any = rng.integers(-3, 4, shape) if dtype.kind in "iu" else rng.standard_normal(shape)
    return np.asarray(drawn).astype(dtype)
