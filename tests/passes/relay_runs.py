"""Relay modules run by the reference, so that a pass can be held to the numbers before it."""
from __future__ import annotations

from typing import Any

import numpy as np

from irscope.expand import expand
from irscope.graph import Module
from tests.lower.whole import inputs_of, reference

Array = np.ndarray[Any, Any]


def outputs(module: Module, seed: int = 0, like: Module | None = None) -> list[Array]:
    """What a module gives for drawn inputs; ``like`` says for whose inputs they are drawn."""
    drawn = inputs_of(expand(like or module), seed)
    return reference(expand(module), drawn)


def meaning_stays(before: Module, after: Module, rtol: float = 1e-5, atol: float = 1e-5, seed: int = 0) -> None:
    """Both modules give the same numbers for the same inputs."""
    wanted, got = outputs(before, seed), outputs(after, seed, before)
    assert len(wanted) == len(got)
    for a, b in zip(wanted, got, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(b.astype(np.float64), a.astype(np.float64), rtol=rtol, atol=atol)
