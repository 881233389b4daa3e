"""What the other releases of a compiler decide on the edges of a module, where they differ."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from irscope.fusion.plan import EdgeVerdict, Plan
from irscope.fusion.policy import OfReleases, Policy
from irscope.graph import Module

Key = tuple[str, str, str]
WORDS = {"all": "fused", "some": "fused in part", "none": "not fused"}


def across_releases(policy: Policy, module: Module, verdicts: Iterable[EdgeVerdict]) -> list[EdgeVerdict]:
    """Verdicts with what each release makes of the edges on which releases differ; as they are for compilers of one known release."""
    verdicts = list(verdicts)
    plans = policy.plans_of_releases(module) if isinstance(policy, OfReleases) and policy.compares(module) else {}
    if len({id(made) for made in plans.values()}) <= 1:
        return verdicts
    tables: dict[int, dict[Key, str]] = {id(made): _table(made) for made in plans.values()}
    found = []
    for verdict in verdicts:
        # An edge that only some releases have (in names of the rewritten text) is compared among those.
        said = tuple((name, fused) for name, made in plans.items() if (fused := tables[id(made)].get(_key(verdict))) is not None)
        found.append(replace(verdict, releases=said) if len({fused for _, fused in said}) > 1 else verdict)
    return found


def uncompared(policy: Policy, module: Module) -> list[str]:
    """A remark that the releases were not compared on this module, because it is too large; empty otherwise."""
    if not isinstance(policy, OfReleases) or policy.compares(module):
        return []
    return [f"the text is too large to compare what the releases of {policy.name} make of it: --policy {policy.name}@RELEASE asks one"]


def change_words(releases: Sequence[tuple[str, str]]) -> str:
    """What releases decide, from the oldest on: ``fused up to jaxlib-0.10.2, not fused since jaxlib-0.11.2``."""
    runs = [(fused, [name for name, _ in run]) for fused, run in groupby(reversed(releases), key=lambda one: one[1])]
    parts = []
    for number, (fused, names) in enumerate(runs):
        if number == 0:
            when = f"up to {names[-1]}"
        elif number == len(runs) - 1:
            when = f"since {names[0]}"
        else:
            when = f"in {names[0]}" if len(names) == 1 else f"from {names[0]} to {names[-1]}"
        parts.append(f"{WORDS[fused]} {when}")
    return ", ".join(parts)


def _table(plans: Iterable[Plan]) -> dict[Key, str]:
    return {_key(verdict): verdict.fused for plan in plans for verdict in plan.verdicts}


def _key(verdict: EdgeVerdict) -> Key:
    return (verdict.graph.name, *verdict.names)
