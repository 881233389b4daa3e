"""Programs of our own, as jaxlib 0.10.2 had them for an H100 before it made kernels of their products, and after it moved reshapes out.

Names of places in programs are left out of the texts.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from pathlib import Path

import pytest

from benchmarks.xla_gemm.hoist import hoist_bitcasts
from irscope.api import load
from irscope.fusion.xla.gemm.products import rewrite
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.instructions import Computation
from irscope.fusion.xla.stage import computations
from irscope.fusion.xla_gpu import marked
from irscope.ops import hlo

FOLDER = Path(__file__).parent.parent / "data" / "xla_gpu_products"
PROGRAMS = sorted(path.name.removesuffix(".before.hlo") for path in FOLDER.glob("*.before.hlo"))


def read(path: Path) -> list[Computation]:
    module = load(path.read_text()).module()
    return [marked(module, Computation.of(graph)) for graph in computations(module)]


def kernels(made: list[Computation]) -> Counter[Hashable]:
    """The Triton kernels with a product: what they give, hold and read."""
    found: Counter[Hashable] = Counter()
    for kernel in (i for computation in made for i in computation.instructions if i.body is not None):
        assert kernel.body is not None
        held = Counter((i.op.name, i.dtype, i.dims) for i in kernel.body.instructions if i.op is not hlo.parameter)
        found[kernel.dims, tuple(sorted(held.items())), tuple((p.dtype, p.dims) for p in kernel.operands)] += 1
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_kernels_of_products_are_xlas(name: str) -> None:
    made = read(FOLDER / f"{name}.before.hlo")
    for computation in made:
        rewrite(computation, DEVICES["h100"])
        hoist_bitcasts(computation)
    theirs = kernels(read(FOLDER / f"{name}.after.hlo"))
    assert kernels(made) == theirs
    assert theirs


def test_all_programs_are_there() -> None:
    assert len(PROGRAMS) == 23
