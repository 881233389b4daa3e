"""The policies: each reads a primitive graph and says what a compiler fuses in it."""
from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast

from irscope.fusion.plan import Plan
from irscope.graph import Graph
from irscope.source import UserError, did_you_mean

POLICIES: dict[str, str] = {
    "irscope": "irscope.fusion.irscope",
    "tvm": "irscope.fusion.tvm",
}
"""Name of a policy: the module that has it."""


class Policy(Protocol):
    """What a module in this room offers."""

    name: str

    def plan(self, graph: Graph) -> Plan:
        """The groups of ``graph`` (a primitive graph) and a verdict on each of its edges."""


def policy_named(name: str) -> Policy:
    """A policy by name. Raises UserError for an unknown one."""
    if name not in POLICIES:
        raise UserError(f"there is no fusion policy {name!r}", did_you_mean(name, POLICIES) or f"the policies are: {', '.join(POLICIES)}")
    return cast(Policy, import_module(POLICIES[name]).POLICY)
