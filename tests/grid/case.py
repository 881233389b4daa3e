"""A case of the grid: a template, a size, an element type and circumstances, all told by its key; and its program."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

import tests.grid.programs  # noqa: F401  (enters the templates)
from irscope.backends import llvm_compile
from irscope.graph import DTYPES
from tests.grid.forms import BEHIND, EPILOGUES, FIRST, OTHERS
from tests.grid.sizes import LEVELS
from tests.grid.template import TEMPLATES, Maker
from tests.grid.text import Drawn, Shape

Array = np.ndarray[Any, Any]
PLACES = ("end", "begin")


@dataclass(frozen=True, slots=True)
class Case:
    """``threads`` and ``cpu`` say for what it is compiled, ``first`` and ``others`` how it finds its operands, ``epilogue`` and ``behind``
    what becomes of its result, ``place`` at which end of a guarded region its arrays lie."""

    template: str
    size: Shape
    dtype: str
    threads: int = 1
    cpu: str = "native"
    first: str = "plain"
    others: str = "plain"
    epilogue: str = "unchanged"
    behind: str = "alone"
    place: str = "end"

    @property
    def key(self) -> str:
        """All of it: ``dot/5x7x33/bf16/2/x86-64-v4/plain/aliased/residual/padded/end``."""
        size = "x".join(map(str, self.size)) or "scalar"
        return "/".join((self.template, size, self.dtype, str(self.threads), self.cpu, self.first, self.others, self.epilogue, self.behind, self.place))

    @staticmethod
    def of(key: str) -> Case:
        """The case of a key. Raises ValueError for what is none."""
        parts = key.split("/")
        if len(parts) != 10 or parts[0] not in TEMPLATES:
            raise ValueError(f"{key!r} is no key of a case")
        size = () if parts[1] == "scalar" else tuple(map(int, parts[1].split("x")))
        return Case(parts[0], size, parts[2], int(parts[3]), *parts[4:])

    def program(self) -> tuple[str, list[Drawn]]:
        """The text, and how its parameters are drawn."""
        m = Maker(self.dtype, self.size, self.first, self.others)
        made = TEMPLATES[self.template].build(m)
        value, *more = made if isinstance(made, list) else [made]
        value = EPILOGUES[self.epilogue](m, value, m.first, m.more)
        value = BEHIND[self.behind](m, value, m.more)
        return m.written([value, *more, *m.more]), m.parameters

    def arrays(self, parameters: Sequence[Drawn], run: int) -> list[Array]:
        """Inputs, the same for the same key and run; the fixed ones are the same in all runs."""
        seed = crc32(f"{self.template}{self.size}{self.dtype}".encode())
        return [draw(p, np.random.default_rng([seed, n, 0 if p.fixed else run])) for n, p in enumerate(parameters)]


def draw(drawn: Drawn, rng: np.random.Generator) -> Array:
    """Normal numbers, integers of both signs, coins; indices where a range is given."""
    dtype, shape = DTYPES[drawn.dtype], drawn.shape
    if drawn.low is not None and drawn.high is not None:
        values: Any = rng.integers(drawn.low, drawn.high, shape, endpoint=True)
    elif dtype.kind == "pred":
        values = rng.integers(0, 2, shape)
    elif dtype.is_integer:
        high = min(1 << (dtype.bits - 1 if dtype.is_signed else dtype.bits), 100)
        values = rng.integers(-high if dtype.is_signed else 0, high, shape)
    elif dtype.is_complex:
        values = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    else:
        values = rng.standard_normal(shape)
    if dtype.name == "f8e8m0fnu":
        # It has no sign, so half of the numbers would be NaN. A kernel of a convolution must hold none: what lies outside of the image is
        # not multiplied by the definition, and by zero in compiled code.
        values = np.abs(values)
    if drawn.square:
        values = values @ np.swapaxes(values.conj(), -1, -2) + shape[-1] * np.eye(shape[-1])
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype.numpy())


def levels() -> tuple[str, ...]:
    """The processor levels whose code this machine runs."""
    native = llvm_compile.host().target.features
    return tuple(cpu for cpu in LEVELS if cpu == "native" or llvm_compile.host(cpu).target.features <= native)


def factors() -> Mapping[str, tuple[Any, ...]]:
    """What is covered pairwise, with its levels."""
    return {"threads": (1, 2, 4), "cpu": levels(), "first": tuple(FIRST), "others": tuple(OTHERS), "epilogue": tuple(EPILOGUES),
            "behind": tuple(BEHIND), "place": PLACES}
