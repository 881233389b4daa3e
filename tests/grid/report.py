"""A campaign in a page of markdown: what was covered, by which seeds, and what went wrong."""
from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from tests.grid.case import factors
from tests.grid.state import State
from tests.grid.template import TEMPLATES

FINE = ("right", "refused")
SHOWN = 5
"""Failures of one template and kind that are listed; the others are counted."""


def report(state: State, seeds: Sequence[int], planned: int) -> str:
    """The summary."""
    count = state.count()
    failed = sum(n for said, n in count.items() if said not in FINE)
    told = ", ".join(f"{n} {said}" for said, n in count.most_common())
    lines = [f"# Grid of irscope/ {state.tree[:12]}", "",
             f"{len(state.results)} of {planned} cases in {state.seconds / 60:.0f} minutes of CPU time, seeds {', '.join(map(str, seeds)) or 'none'}: "
             f"{told or 'none has run'}; {failed} failures.", "",
             "| factor | levels |", "|---|---|",
             f"| template | {len(TEMPLATES)} |", f"| size | {sum(len(t.sizes) for t in TEMPLATES.values())} over all templates |",
             f"| element type | {len({d for t in TEMPLATES.values() for d in t.dtypes})} |"]
    lines += [f"| {name} | {', '.join(map(str, levels))} |" for name, levels in factors().items()]
    lines += ["", "| family | templates | cases whose kernels it built |", "|---|---|---|"]
    built = Counter(family for r in state.results.values() for family in r.families)
    named = Counter(t.family for t in TEMPLATES.values())
    lines += [f"| {family} | {named[family]} | {built[family]} |" for family in sorted({*built, *named})]
    return "\n".join([*lines, *_failures(state), *_refusals(state), ""])


def _failures(state: State) -> list[str]:
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for r in state.results.values():
        if r.said not in FINE:
            groups[r.key.split("/")[0], r.said].append(f"`{r.key}`: {r.why}")
    lines = ["", "## Failures", ""] if groups else []
    for (template, said), found in sorted(groups.items()):
        lines += [f"* {template}: {len(found)} {said}", *(f"  * {line}" for line in sorted(found)[:SHOWN])]
    return lines


def _refusals(state: State) -> list[str]:
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    for r in state.results.values():
        if r.said == "refused":
            template, _, dtype, *_ = r.key.split("/")
            groups[template][dtype] += 1
    return ["", "## Refused", "", *(f"* {t}: {', '.join(f'{d} ({n})' for d, n in sorted(c.items()))}" for t, c in sorted(groups.items()))] if groups else []
