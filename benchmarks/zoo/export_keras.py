"""Writes a net of keras on jax as HLO text before optimisation, with its weights as parameters."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.zoo.net import Net


def export(net: Net, folder: Path) -> None:
    """``hlo.txt``, ``weights.npz`` and ``hlo.inputs.npz`` by the parameters' places, and ``expected.npz``."""
    os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
    import jax
    import keras  # type: ignore[import-not-found, unused-ignore]

    keras.utils.set_random_seed(0)
    model = net.build()
    random = np.random.default_rng(0)
    for weight in model.weights:
        _liven(weight, random)
    weights = [np.asarray(v) for v in (*model.trainable_variables, *model.non_trainable_variables)]
    learned = len(model.trainable_variables)
    arrays = [given.draw(f"{net.name}/{name}") for name, given in net.inputs.items()]
    arrays = [a.astype(np.int32) if a.dtype.kind == "i" else a for a in arrays]

    def call(*values: Any) -> Any:
        given, inputs = values[:len(weights)], list(values[len(weights):])
        return model.stateless_call(given[:learned], given[learned:], inputs if len(inputs) > 1 else inputs[0], training=False)[0]

    jitted = jax.jit(call, keep_unused=True)
    expected = {f"out{i}": np.asarray(v) for i, v in enumerate(jax.tree.leaves(jitted(*weights, *arrays)))}
    if not all(np.isfinite(v).all() for v in expected.values()):
        raise ValueError("the framework's own results are not finite")
    (folder / "hlo.txt").write_text(jitted.lower(*weights, *arrays).compiler_ir("hlo").as_hlo_text(print_large_constants=True))
    np.savez(folder / "expected.npz", **expected)
    np.savez(folder / "weights.npz", **{f"arg{i}": v for i, v in enumerate(weights)})
    np.savez(folder / "hlo.inputs.npz", **{f"arg{len(weights) + i}": v for i, v in enumerate(arrays)})


def _liven(weight: Any, random: np.random.Generator) -> None:
    """Draws new values for weights that are all equal: scales of 1, biases of 0, statistics."""
    value = np.asarray(weight)
    if value.dtype == np.float32 and value.size > 1 and (value == value.flat[0]).all():
        low, high = (0.8, 1.2) if value.flat[0] == 1 else (-0.1, 0.1)
        weight.assign(random.uniform(low, high, value.shape).astype(np.float32))
