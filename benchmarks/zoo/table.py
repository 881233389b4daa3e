"""The page that says what became of every net."""
from __future__ import annotations

from collections import Counter, defaultdict

from benchmarks.zoo.nets import NETS, forms
from benchmarks.zoo.running import Run

CPU_S, PEAK_MB = 60, 3000
"""The most that a net may take."""
_SHORT = {"inlined": "inlined", "frozen": "frozen", "hlo": "HLO"}


def excess(one: Run) -> str:
    """By what the run is beyond the bounds, or nothing."""
    over = [f"{one.cpu_s:.0f} s"] if (one.cpu_s or 0) > CPU_S else []
    return ", ".join(over + ([f"{one.peak_mb:.0f} MB"] if (one.peak_mb or 0) > PEAK_MB else []))


def summary(runs: list[Run]) -> str:
    """Counts of nets and of texts, and what is slowest and largest."""
    nets: defaultdict[str, list[Run]] = defaultdict(list)
    for one in runs:
        nets[one.net].append(one)
    verdicts = Counter(_verdict(of) for of in nets.values())
    texts = Counter(one.said for one in runs)
    lines = [f"{len(nets)} nets: " + ", ".join(f"{n} {said}" for said, n in verdicts.most_common()),
             f"{len(runs)} texts: " + ", ".join(f"{n} {said}" for said, n in texts.most_common())]
    if runs:
        slow, large = max(runs, key=lambda one: one.cpu_s or 0), max(runs, key=lambda one: one.peak_mb or 0)
        lines.append(f"slowest {slow.net} ({slow.cpu_s or 0:.1f} s of CPU time), largest {large.net} ({large.peak_mb or 0:.0f} MB)")
    return "\n".join(lines)


def _verdict(runs: list[Run]) -> str:
    """The worst of a net's texts; but one text refused is named beside one that is right."""
    said = {one.said for one in runs}
    for worst in ("wrong", "endless", "failed", "unexported"):
        if worst in said:
            return worst
    if said == {"right", "refused"}:
        return "right in one form, refused in the other"
    return "right" if said == {"right"} else "refused"


def page(runs: list[Run], tree: str) -> str:
    """docs/zoo.md."""
    rows = []
    for one in runs:
        net = NETS[one.net]
        figures = (_number(one.error, ".1e"), _number(one.kernels, "d"), _number(one.cpu_s, ".1f"), _number(one.compile_s, ".1f"),
                   _number(one.run_ms, ".2f"), _number(one.peak_mb, ".0f"))
        cells = (one.net.removeprefix("keras_"), net.package, net.reduced, _SHORT[one.form], one.said, *figures)
        rows.append(f"| {' | '.join(cells)} |")
    others = [f"- `{one.net}`, {_SHORT[one.form]}, {one.said}: {_plain(one.why)}" for one in runs if one.said != "right"]
    missing = [name for name in NETS if any((name, form) not in {(one.net, one.form) for one in runs} for form in forms(NETS[name]))]
    parts = [_HEAD, "## Result", f"irscope/ at tree {tree[:12]}.", "", *(f"- {line}" for line in summary(runs).splitlines()),
             *([f"- not run yet: {', '.join(missing)}"] if missing else []), "",
             *(["## What is not right", *others, ""] if others else []),
             "## All texts",
             "| net | library | how reduced | text | | error | kernels | CPU s | compile s | run ms | peak MB |",
             "|---|---|---|---|---|---|---|---|---|---|---|", *rows, "", _FIRST.rstrip()]
    return "\n".join(parts) + "\n"


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _plain(why: str) -> str:
    return why.replace("|", "/").replace("<", "&lt;")


_FIRST = """## The first run
Before any of the faults that it found were fixed (tree c8a86a0e25ff), 268 texts of these 144 nets had 223 right results, 36 refusals and
9 wrong results. Of the nets, 108 were right in both texts, 26 in one with the other refused, 5 wrong and 5 refused. Slowest was
keras's NASNetMobile with 8.0 s of CPU time, largest vgg11_bn with 1,616 MB.

- Wrong: `coat_lite_tiny`, `twins_pcpvt_small`, `twins_svt_small`, `davit_tiny` (a convolution's operand added to its result), in both
  texts; and `gru_translator` frozen, for which the zoo had omitted a file of weights.
- Refused: 25 inlined texts whose `.pt` contains buffers of transformers (tensors with attributes were not read), frozen texts with lists of
  tensors, `longformer` (as_strided), `bloom` (a function in Python), `vilt` (random numbers).
"""

_HEAD = """# A zoo of nets
`irscope compile-and-run --expect` runs nets as their libraries build them, with random weights from a fixed seed, on one thread, and
compares the results with those of the framework within the command's default tolerances. `make zoo` installs the frameworks in a separate
environment (`.zoo`), runs the nets without a result for this state of `irscope/`, and writes this page; `make zoo ARGS='--only swin_t'`
runs one net.

- Nets of torch are traced and tested as two texts: `inlined` is `traced.inlined_graph`, `frozen` is `torch.jit.freeze(traced).graph`, each
  with a `.pt` of all parameters and buffers and an `.npz` of its constants (in frozen graphs most weights are constants). Nets of keras
  (on jax) are HLO before optimisation, with weights as parameters.
- Weights that the library initialises to one value (scales of 1 or 1e-6, biases of 0, statistics) get random values,
  since constants hide faults.
- Widths, depths and images are reduced where a net would take long; the tables in `benchmarks/zoo` say how each is built.
- `error` is the largest difference over the largest value of an output. `CPU s` is the user and system time of the whole process, from its
  start to its end, without the compilation cache. `compile s` and `run ms` are elapsed times, and `peak MB` is the peak memory of the
  process.
"""
