"""The policies: each takes a primitive graph and decides what one compiler fuses in it."""
from __future__ import annotations

from importlib import import_module
from typing import Protocol, cast, runtime_checkable

from irscope.fusion.plan import Plan
from irscope.graph import Graph, Module
from irscope.source import UserError, did_you_mean
from irscope.version import __version__

POLICIES: dict[str, str] = {
    "inductor": "irscope.fusion.inductor.policy",
    "irscope": "irscope.fusion.irscope",
    "tvm": "irscope.fusion.tvm",
    "xla-cpu": "irscope.fusion.xla_cpu",
    "xla-gpu": "irscope.fusion.xla_gpu",
}
"""Name of a policy: the module that defines it."""


class Policy(Protocol):
    """The interface of a policy module."""

    name: str

    def plan(self, graph: Graph) -> Plan:
        """The groups of ``graph`` (a primitive graph) and a verdict on each of its edges."""


@runtime_checkable
class AsWritten(Protocol):
    """A policy that judges a module as its text has it, with its layouts, order and fusions, and names nodes as the text does.

    ``version`` names the compiler and release whose decisions it follows (``xla-cpu@jaxlib-0.10.2``).
    """

    name: str
    version: str

    def plan_module(self, module: Module, device: str | None = None) -> list[Plan]:
        """A plan for each computation that the entry runs. Raises UserError for a device that the policy does not support."""

    def remarks(self, module: Module, device: str | None = None) -> list[str]:
        """How certain the verdicts on this module are: where its text, or the device, differs from what the compiler's pass would see."""


def compiler_of(name: str) -> str:
    """The compiler of a policy, whatever the release: ``xla-cpu`` of ``xla-cpu@jaxlib-0.4.38``."""
    return name.partition("@")[0]


def releases_of(name: str) -> dict[str, Policy]:
    """The releases of a compiler's policy by name (``jaxlib-0.10.2``); irscope's own policy has irscope's version."""
    module = import_module(POLICIES[name])
    if hasattr(module, "RELEASES"):
        return dict(module.RELEASES)
    latest = cast(Policy, module.POLICY)
    return {latest.version.partition("@")[2] if isinstance(latest, AsWritten) else __version__: latest}


def policy_named(name: str) -> Policy:
    """A policy by name, of the release given (``xla-cpu@jaxlib-0.4.38``) or the latest. Raises UserError for an unknown one."""
    compiler, at, release = name.partition("@")
    if compiler not in POLICIES:
        hint = did_you_mean(compiler, POLICIES) or f"the policies are: {', '.join(POLICIES)}"
        raise UserError(f"there is no fusion policy {name!r}", hint)
    if not at:
        return cast(Policy, import_module(POLICIES[name]).POLICY)
    known = releases_of(compiler)
    if release not in known:
        names = " and ".join(f"{compiler}@{one}" for one in known)
        raise UserError(f"{compiler} is not known as of {release or 'no release'}", f"there is {names}")
    return known[release]
