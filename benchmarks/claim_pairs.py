"""Whether claimed gains are real, on programs that no rule was made from: ``python benchmarks/claim_pairs.py time|table [MACHINE...]``.

Each pair is a program of jax with a fault and the same without it; the kinds of faults were written down before irscope saw one. ``time``
prints the text with the fault and runs both by XLA on one thread (needs jax; pairs that have times are left alone), ``table`` lints the
texts under ``xla-cpu`` and prints the figures of docs/lint/claims.md. Times are the lower quartile of CPU time, in microseconds.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
FOLDER = ROOT / "tests" / "lint" / "claims"
TIMES = FOLDER / "times.json"
PAIRS: dict[str, tuple[str, Callable[..., Any], Callable[..., Any], list[Any]]] = {}
RANDOM = np.random.default_rng(0)
SECONDS = 0.4
"""Each program is timed for so long."""


def array(*shape: int, dtype: str = "float32") -> Any:
    """Random numbers."""
    return RANDOM.normal(size=shape).astype(dtype)


def rows(n: int, *shape: int) -> Any:
    """Random indices below ``n``."""
    return RANDOM.integers(0, n, shape).astype("int32")


def pairs() -> None:
    """Declare the pairs: a name, what is wrong, both programs, the arguments."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def add(name: str, about: str, bad: Callable[..., Any], good: Callable[..., Any], *given: Any) -> None:
        PAIRS[name] = about, bad, good, list(given)

    add(
        "repeated_heads_decode",
        "Key heads are repeated 8 times before one query row reads them.",
        lambda q, k: jnp.einsum("bhd,bshd->bhs", q, jnp.repeat(k, 8, axis=2)),
        lambda q, k: jnp.einsum("bgrd,bsgd->bgrs", q.reshape(4, 4, 8, 64), k).reshape(4, 32, 512),
        array(4, 32, 64),
        array(4, 512, 4, 64),
    )
    add(
        "repeated_heads_prefill",
        "Key heads are repeated 4 times before all queries read them.",
        lambda q, k: jnp.einsum("bqhd,bshd->bhqs", q, jnp.repeat(k, 4, axis=2)),
        lambda q, k: jnp.einsum("bqgrd,bsgd->bgrqs", q.reshape(2, 128, 4, 4, 64), k).reshape(2, 16, 128, 128),
        array(2, 128, 16, 64),
        array(2, 128, 4, 64),
    )
    add(
        "product_order",
        "(A B) v where A (B v) needs a hundredth of the operations.",
        lambda a, b, v: (a @ b) @ v,
        lambda a, b, v: a @ (b @ v),
        array(384, 384),
        array(384, 384),
        array(384, 2),
    )
    add("diagonal", "A product with a diagonal matrix.", lambda x, d: x @ jnp.diag(d), lambda x, d: x * d, array(128, 512), array(512))
    add(
        "sort_for_largest",
        "A row is sorted for its largest number.",
        lambda x: jnp.sort(x, axis=1)[:, -1],
        lambda x: x.max(1),
        array(32, 2048),
    )
    add(
        "sort_for_five",
        "A row is sorted for its five largest numbers.",
        lambda x: jnp.sort(x, axis=1)[:, -5:],
        lambda x: lax.top_k(x, 5)[0][:, ::-1],
        array(16, 4096),
    )
    add(
        "one_hot_rows",
        "Rows of a table by a product with one-hot rows.",
        lambda i, t: jax.nn.one_hot(i, 1000, dtype=t.dtype) @ t,
        lambda i, t: t[i],
        rows(1000, 64),
        array(1000, 128),
    )
    add(
        "last_position",
        "A head computes all positions, and the last is used.",
        lambda h, w: (h @ w)[:, -1],
        lambda h, w: h[:, -1] @ w,
        array(4, 32, 256),
        array(256, 2000),
    )
    add(
        "padded_product",
        "Rows of 130 are padded to 256 for two products, and sliced back.",
        lambda x, v, w: (jnp.tanh(jnp.pad(x, ((0, 126), (0, 0))) @ v) @ w)[:130],
        lambda x, v, w: jnp.tanh(x @ v) @ w,
        array(130, 256),
        array(256, 256),
        array(256, 256),
    )
    add(
        "inverse",
        "A matrix is inverted and multiplied.",
        lambda a, b: jnp.linalg.inv(a) @ b,
        lambda a, b: jnp.linalg.solve(a, b),
        array(192, 192) + 20 * np.eye(192, dtype="float32"),
        array(192, 8),
    )
    add(
        "double_literal",
        "A NumPy scalar widens a gate to float64.",
        lambda x: jnp.tanh(x * np.float64(0.7)).astype("float32"),
        lambda x: jnp.tanh(x * np.float32(0.7)),
        array(256, 1024),
    )
    add(
        "double_product",
        "A table of NumPy is float64 in front of a product.",
        lambda x, w, t: ((x + t) @ w).astype("float32"),
        lambda x, w, t: (x + t.astype("float32")) @ w,
        array(128, 256),
        array(256, 256),
        array(256, dtype="float64"),
    )
    add(
        "crossed_error",
        "Predictions of shape (n, 1) minus targets of shape (n).",
        lambda p, y: jnp.mean((p - y) ** 2),
        lambda p, y: jnp.mean((p[:, 0] - y) ** 2),
        array(1500, 1),
        array(1500),
    )
    add(
        "weights_of_each_example",
        "One weight matrix is repeated for each example of a batch.",
        lambda x, w: jnp.einsum("bsk,bkn->bsn", x, jnp.broadcast_to(w, (16, 128, 128))),
        lambda x, w: (x.reshape(-1, 128) @ w).reshape(16, 32, 128),
        array(16, 32, 128),
        array(128, 128),
    )
    add(
        "rounded_weights",
        "Weights are rounded to bfloat16 and widened again in each run.",
        lambda x, w: x @ w.astype("bfloat16").astype("float32"),
        lambda x, w: x @ w,
        array(4, 768),
        array(768, 768),
    )
    add(
        "widened_bytes",
        "Weights of 8 bits become floats before the product of four rows.",
        lambda x, w, s: x @ (w.astype("float32") * s),
        lambda x, w, s: (x @ w.astype("float32")) * s,
        array(4, 768),
        RANDOM.integers(-99, 99, (768, 768)).astype("int8"),
        array(768),
    )
    add(
        "rows_after_product",
        "A product of a whole table, of which 64 rows are read.",
        lambda e, w, i: (e @ w)[i],
        lambda e, w, i: e[i] @ w,
        array(2048, 128),
        array(128, 256),
        rows(2048, 64),
    )
    add(
        "reversed_by_slices",
        "Sixteen slices are put together in the opposite order.",
        lambda x: jnp.tanh(jnp.concatenate([x[:, 64 * i : 64 * i + 64] for i in reversed(range(16))], 1)),
        lambda x: jnp.tanh(x.reshape(-1, 16, 64)[:, ::-1].reshape(x.shape)),
        array(256, 1024),
    )
    add(
        "repeated_rows",
        "Each row is repeated 16 times, and all copies are multiplied.",
        lambda x, w: jnp.repeat(x, 16, axis=0) @ w,
        lambda x, w: jnp.repeat(x @ w, 16, axis=0),
        array(64, 256),
        array(256, 256),
    )
    add(
        "sum_of_tiles",
        "A row is tiled 512 times, and the tiles are summed.",
        lambda x: jnp.broadcast_to(x[None] ** 2, (512, 4096)).sum(0),
        lambda x: 512 * x**2,
        array(4096),
    )
    add(
        "distances",
        "Squared distances by a tensor of differences.",
        lambda x, y: ((x[:, None] - y[None]) ** 2).sum(-1),
        lambda x, y: (x**2).sum(1)[:, None] + (y**2).sum(1) - 2 * x @ y.T,
        array(512, 64),
        array(512, 64),
    )
    add(
        "trace_of_product",
        "The trace of a product.",
        lambda a, b: jnp.trace(a @ b),
        lambda a, b: (a * b.T).sum(),
        array(384, 384),
        array(384, 384),
    )
    add(
        "running_sum_for_last",
        "A running sum of which the last is used.",
        lambda x: jnp.cumsum(x, axis=1)[:, -1],
        lambda x: x.sum(1),
        array(64, 2048),
    )
    add(
        "rows_one_by_one",
        "A loop multiplies row by row.",
        lambda x, w: lax.map(lambda r: r @ w, x),
        lambda x, w: x @ w,
        array(64, 256),
        array(256, 256),
    )
    add(
        "half_sums",
        "Sums of 4096 numbers in float16.",
        lambda x: x.astype("float16").sum(1, dtype="float16"),
        lambda x: x.sum(1),
        array(64, 4096),
    )


def more_pairs() -> None:
    """A second set, written when the model of xla-cpu had been fitted, before irscope saw one of them."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def add(name: str, about: str, bad: Callable[..., Any], good: Callable[..., Any], *given: Any) -> None:
        PAIRS["second_" + name] = about, bad, good, list(given)

    add(
        "repeated_heads",
        "Key heads are repeated 4 times, heads before positions.",
        lambda q, k: jnp.einsum("bhd,bhsd->bhs", q, jnp.repeat(k, 4, axis=1)),
        lambda q, k: jnp.einsum("bgrd,bgsd->bgrs", q.reshape(8, 4, 4, 64), k).reshape(8, 16, 256),
        array(8, 16, 64),
        array(8, 4, 256, 64),
    )
    add(
        "row_first",
        "v (A B) where (v A) B needs a hundredth of the operations.",
        lambda v, a, b: v @ (a @ b),
        lambda v, a, b: (v @ a) @ b,
        array(3, 320),
        array(320, 320),
        array(320, 320),
    )
    add(
        "thin_chain",
        "(A B) C of which B C is small.",
        lambda a, b, c: (a @ b) @ c,
        lambda a, b, c: a @ (b @ c),
        array(600, 48),
        array(48, 600),
        array(600, 24),
    )
    add(
        "diagonal_left",
        "A diagonal matrix times a matrix.",
        lambda d, x: jnp.diag(d) @ x,
        lambda d, x: d[:, None] * x,
        array(400),
        array(400, 300),
    )
    add("sort_for_least", "A sort for the smallest number.", lambda x: jnp.sort(x)[:, 0], lambda x: x.min(1), array(100, 1000))
    add(
        "argsort_for_first",
        "An argsort for the position of the largest number.",
        lambda x: jnp.argsort(x, axis=1)[:, -1],
        lambda x: jnp.argmax(x, axis=1),
        array(20, 3000),
    )
    add(
        "one_hot_counts",
        "Counts of classes by one-hot rows.",
        lambda i: jax.nn.one_hot(i, 500).sum(0),
        lambda i: jnp.zeros(500).at[i].add(1.0),
        rows(500, 3000),
    )
    add(
        "one_hot_large",
        "Rows of a large table by a product.",
        lambda i, t: jax.nn.one_hot(i, 4000, dtype=t.dtype) @ t,
        lambda i, t: t[i],
        rows(4000, 48),
        array(4000, 64),
    )
    add(
        "last_of_two_layers",
        "Two layers of all positions, of which the last is used.",
        lambda h, v, w: (jax.nn.relu(h @ v) @ w)[:, -1],
        lambda h, v, w: jax.nn.relu(h[:, -1] @ v) @ w,
        array(8, 24, 128),
        array(128, 256),
        array(256, 128),
    )
    add(
        "few_columns",
        "A product of 512 columns, of which 32 are used.",
        lambda x, w: (x @ w)[:, :32],
        lambda x, w: x @ w[:, :32],
        array(300, 200),
        array(200, 512),
    )
    add(
        "padded_batch",
        "A batch of 20 is padded to 64 for a product.",
        lambda x, w: jnp.pad(x, ((0, 44), (0, 0)))[:64] @ w,
        lambda x, w: jnp.pad(x @ w, ((0, 44), (0, 0))),
        array(20, 512),
        array(512, 512),
    )
    add(
        "double_softmax",
        "A temperature of NumPy makes a softmax float64.",
        lambda x: jax.nn.softmax(x / np.float64(3), -1).astype("float32"),
        lambda x: jax.nn.softmax(x / np.float32(3), -1),
        array(128, 1000),
    )
    add(
        "double_mean",
        "A factor of NumPy makes a mean float64.",
        lambda x: jnp.exp(x * np.float64(2)).mean(1).astype("float32"),
        lambda x: jnp.exp(x * np.float32(2)).mean(1),
        array(200, 1000),
    )
    add(
        "crossed_absolute",
        "An absolute error of (n, 1) and (n).",
        lambda p, y: jnp.abs(p - y).sum(),
        lambda p, y: jnp.abs(p[:, 0] - y).sum(),
        array(1200, 1),
        array(1200),
    )
    add(
        "weights_by_batch",
        "A matrix is repeated for 24 examples.",
        lambda x, w: jnp.einsum("bsk,bkn->bsn", x, jnp.tile(w[None], (24, 1, 1))),
        lambda x, w: (x.reshape(-1, 96) @ w).reshape(24, 48, 96),
        array(24, 48, 96),
        array(96, 96),
    )
    add(
        "halved_weights",
        "Weights are rounded to float16 in each run.",
        lambda x, w: x @ w.astype("float16").astype("float32"),
        lambda x, w: x @ w,
        array(8, 640),
        array(640, 640),
    )
    add(
        "rounded_values",
        "Values are rounded to bfloat16 between two steps.",
        lambda x: jnp.tanh((x * 3).astype("bfloat16").astype("float32")),
        lambda x: jnp.tanh(x * 3),
        array(400, 1000),
    )
    add(
        "table_before_rows",
        "A tanh of a whole table, of which 32 rows are read.",
        lambda t, i: jnp.tanh(t)[i],
        lambda t, i: jnp.tanh(t[i]),
        array(3000, 100),
        rows(3000, 32),
    )
    add(
        "tiled_rows",
        "Rows are tiled 10 times before a product.",
        lambda x, w: jnp.tile(x, (10, 1)) @ w,
        lambda x, w: jnp.tile(x @ w, (10, 1)),
        array(80, 200),
        array(200, 200),
    )
    add(
        "permuted_slices",
        "Twelve slices in another order.",
        lambda x: jnp.exp(jnp.concatenate([x[:, 50 * i : 50 * i + 50] for i in (5, 3, 1, 0, 2, 4, 11, 9, 7, 6, 8, 10)], 1)),
        lambda x: jnp.exp(x.reshape(-1, 12, 50)[:, np.array([5, 3, 1, 0, 2, 4, 11, 9, 7, 6, 8, 10])].reshape(x.shape)),
        array(200, 600),
    )
    add(
        "mean_of_repeats",
        "An exponential of repeats, averaged over them.",
        lambda x: jnp.exp(jnp.broadcast_to(x[:, None], (128, 32, 256))).mean(1),
        lambda x: jnp.exp(x),
        array(128, 256),
    )
    add(
        "outer_products",
        "A covariance as a sum of outer products.",
        lambda x: (x[:, :, None] * x[:, None, :]).sum(0),
        lambda x: x.T @ x,
        array(500, 64),
    )
    add(
        "inverse_large",
        "An inverse times a matrix.",
        lambda a, b: jnp.linalg.inv(a) @ b,
        lambda a, b: jnp.linalg.solve(a, b),
        array(256, 256) + 20 * np.eye(256, dtype="float32"),
        array(256, 16),
    )
    add(
        "running_maximum",
        "A running maximum of which the last is used.",
        lambda x: lax.cummax(x, axis=1)[:, -1],
        lambda x: x.max(1),
        array(50, 3000),
    )
    add(
        "softmax_for_position",
        "A softmax for the position of the largest number.",
        lambda x: jnp.argmax(jax.nn.softmax(x, -1), -1),
        lambda x: jnp.argmax(x, -1),
        array(200, 1000),
    )


def write_and_time() -> None:
    """The texts with a fault, and the times of both programs."""
    import jax

    jax.config.update("jax_cpu_enable_async_dispatch", False)
    jax.config.update("jax_enable_x64", True)
    pairs()
    more_pairs()
    FOLDER.mkdir(parents=True, exist_ok=True)
    kept = json.loads(TIMES.read_text())["pairs"] if TIMES.exists() else {}
    times: dict[str, Any] = {name: row for name, row in kept.items() if name in PAIRS}
    for name, (about, *programs, given) in PAIRS.items():
        if name in times:
            continue
        arguments = [jax.numpy.asarray(a) for a in given]
        row: dict[str, Any] = {"about": about}
        compiled, results = [], []
        for program in programs:
            low = jax.jit(program, keep_unused=True).lower(*arguments)
            compiled.append(low.compile())
            results.append(np.asarray(compiled[-1](*arguments), "float64"))
            if program is programs[0]:
                (FOLDER / f"{name}.hlo").write_text(low.as_text(dialect="hlo"))
        row["error"] = (
            float(np.abs(results[0] - results[1]).max() / max(1e-30, np.abs(results[1]).max()))
            if results[0].shape == results[1].shape
            else 1.0
        )
        found: list[list[float]] = [[], []]
        end = time.perf_counter() + 2 * SECONDS
        while time.perf_counter() < end or len(found[0]) < 5:
            for run, times_of in zip(compiled, found, strict=True):
                began = time.process_time()
                jax.block_until_ready(run(*arguments))
                times_of.append((time.process_time() - began) * 1e6)
        row["bad"], row["good"] = (round(sorted(one)[len(one) // 4], 1) for one in found)
        times[name] = row
        print(name, row, flush=True)
    TIMES.write_text(json.dumps({"jax": jax.__version__, "pairs": times}, indent=1) + "\n")


@dataclass(frozen=True, slots=True)
class Row:
    """A pair: the measured times, and the largest saving that lint claims of the program with the fault; ``rule`` is empty without one."""

    name: str
    about: str
    bad: float
    good: float
    rule: str
    us: float
    least: float
    most: float

    @property
    def gain(self) -> float:
        """What the change saved."""
        return self.bad - self.good

    @property
    def counts(self) -> bool:
        """Whether a tenth of the time was saved."""
        return self.gain >= 0.1 * self.bad

    @property
    def has_right_sign(self) -> bool:
        """Whether time was saved where that is claimed."""
        return self.gain > 0

    @property
    def is_within_two(self) -> bool:
        """Whether the claim is half to twice the gain."""
        return self.counts and 0.5 <= self.us / self.gain <= 2

    @property
    def is_in_range(self) -> bool:
        """Whether the gain lies in the range that is claimed."""
        return self.least <= self.gain <= self.most


def rows_of(machine: str) -> list[Row]:
    """Every pair, linted under ``xla-cpu`` for a machine. Errors and warnings claim, facts do not."""
    from irscope.api import lint  # not in the environment that has jax
    from irscope.api.options import LintOptions
    from irscope.source import Level

    found = []
    for name, row in json.loads(TIMES.read_text())["pairs"].items():
        findings = lint([str(FOLDER / f"{name}.hlo")], LintOptions(isolated=True, policy="xla-cpu", machine=machine)).findings
        claims = [(f.saves, f.code) for f in findings if f.saves and f.saves["us"] > 0 and f.level is not Level.FACT]
        saves, code = max(claims, key=lambda claim: claim[0]["us"], default=({"us": 0.0}, ""))
        found.append(
            Row(name, row["about"], row["bad"], row["good"], code, saves["us"], saves.get("us_least", 0.0), saves.get("us_most", 0.0))
        )
    return found


def figures(rows: list[Row]) -> str:
    """``17 claims, of which 16 have the right sign; ...``."""
    claims = [row for row in rows if row.rule]
    real = [row for row in claims if row.counts]
    return (
        f"{sum(row.counts for row in rows)} of {len(rows)} programs gain a tenth or more; {len(claims)} claims, "
        f"{sum(row.has_right_sign for row in claims)} with the right sign; of {len(real)} claims of such a gain "
        f"{sum(row.is_within_two for row in real)} are within a factor of two, and {sum(row.is_in_range for row in real)} "
        "have it in their range"
    )


def table(rows: list[Row]) -> str:
    """A line for each pair."""
    lines = ["| program | with the fault | without | gain | claim | range | rule |", "|---|---:|---:|---:|---:|---:|---|"]
    for row in rows:
        claim = f"{row.us:.0f} | {row.least:.0f} to {row.most:.0f} | {row.rule}" if row.rule else " | | "
        lines.append(f"| {row.about} | {row.bad:.0f} | {row.good:.0f} | {row.gain:.0f} | {claim} |")
    return "\n".join(lines)


def main() -> None:
    """Times the pairs that have no times yet, or prints figures and table for a machine."""
    if sys.argv[1:] == ["time"]:
        write_and_time()
        return
    for machine in sys.argv[2:] or (str(FOLDER / "host.toml"), "cpu"):
        rows = rows_of(machine)
        first, second = ([row for row in rows if row.name.startswith("second_") is later] for later in (False, True))
        print(f"{Path(machine).name}\nfirst set: {figures(first)}\nsecond set: {figures(second)}\n\n{table(rows)}\n")


if __name__ == "__main__":
    main()
