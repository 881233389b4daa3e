"""Operators over arrays of dynamic size: what numpy gives on the valid elements."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irscope
from irscope.backends.varying import reference_results
from tests.expand.dynamic_programs import PROGRAMS

X = np.random.default_rng(5).standard_normal((4, 5, 6)).astype(np.float32)


def running(x: Any) -> Any:
    return np.cumsum(x, 1)


def padded_within(x: Any) -> Any:
    made = np.zeros((4, max(0, 3 * x.shape[1] - 2), 6), np.float32)
    made[:, ::3] = x
    return made


def updated(x: Any) -> Any:
    made = X.copy()
    made[:1, :x.shape[1]] = x[:1]
    return made[:, :x.shape[1]]


def updated_at(x: Any) -> Any:
    made = X.copy()
    part = x[:2, :min(3, x.shape[1])]
    made[1:3, :part.shape[1]] = part
    return made


MEANINGS: dict[str, Callable[[Any], Any]] = {
    "slice of all": lambda x: x[:, :, :3], "slice of a part": lambda x: x[:, 1:4], "slice with a stride": lambda x: x[:, 1:5:2],
    "pad beside": lambda x: np.pad(x, ((1, 1), (0, 0), (0, 0))), "pad to the same size": lambda x: np.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1],
    "pad by one": lambda x: np.pad(x, ((0, 0), (1, 0), (0, 0))), "pad by less": lambda x: x[:, 1:], "pad within": padded_within,
    "concatenate along": lambda x: np.concatenate([x, X], 1), "concatenate across": lambda x: np.concatenate([x, x], 0),
    "reverse along": lambda x: x[::-1, ::-1], "reverse across": lambda x: x[:, :, ::-1], "dynamic slice of all": lambda x: x[:1],
    "dynamic slice of a part": lambda x: X[:1, :2], "update of all": updated, "update at a vector": updated_at,
    "get of a static size": lambda x: np.int32(4), "get of a size": lambda x: np.int32(x.shape[1]), "set to the bound": lambda x: X, "set to less": lambda x: X[:, :3],
    "a broadcast": lambda x: np.broadcast_to(x, (2, *x.shape)), "equal sizes": lambda x: x - x, "a sum along": lambda x: x.sum(1), "a sum across": lambda x: x.sum((0, 2)),
    "a window with steps": lambda x: np.stack([x[:, i] + x[:, i + 1] for i in range(0, x.shape[1] - 1, 2)], 1) if x.shape[1] > 1 else x[:, :0],
    "a window along": lambda x: x[:, :-1] + x[:, 1:], "a dilated window": lambda x: x[:, :-2] + x[:, 2:], "a running sum": running,
    "a window across": lambda x: x[:-1] + x[1:], "a product along": lambda x: np.einsum("anb,cnd->abcd", x, x), "a product across": lambda x: np.einsum("anb,cmb->ancm", x, x),
    "a product of batches": lambda x: np.einsum("anb,cnb->nac", x, x), "a sort along": lambda x: np.sort(x, 1), "a sort across": lambda x: np.sort(x, 2),
    "wider elements": lambda x: np.ascontiguousarray(x).view(np.uint8).reshape(*x.shape, 4), "a gather of rows": lambda x: x[[1, 3]],
    "a gather of a part": lambda x: X[[1, 3], :2], "a barrier": lambda x: x, "a transform of batches": lambda x: -np.fft.rfft(x).astype(np.complex64),
    "a branch": lambda x: -x, "a loop": lambda x: -x, "a loop that cuts": lambda x: X[:, :3], "a constant of bounded type": lambda x: np.array([-1, -2, -3], np.float32),
}


@pytest.mark.parametrize("name", MEANINGS)
def test_the_valid_elements_are_those_of_numpy(name: str) -> None:
    module = irscope.load(PROGRAMS[name]).module()
    for n in (5, 3, 2, 1):
        found, = reference_results(module, [X, np.array(n, np.int32), np.array(6, np.int32)])
        wanted = MEANINGS[name](X[:, :n])
        assert found.shape == wanted.shape, n
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
