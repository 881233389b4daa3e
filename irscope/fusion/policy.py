"""The policies: each takes a primitive graph and decides what one compiler fuses in it."""
from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module, metadata
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
INSTALLED = "installed"
"""The release of the compiler that is installed in the environment of irscope."""


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


@runtime_checkable
class FromSource(Protocol):
    """A policy of a compiler that rewrites a program before it fuses, and that can begin there."""

    def plan_changed(self, module: Module, device: str | None = None) -> list[Plan]:
        """A plan for each computation of a program that no compiler has seen: it is rewritten first, whatever its text shows."""

    def rewrites(self, module: Module, device: str | None = None) -> bool:
        """Whether ``plan_module`` rewrites a text, too, because its compiler has not yet."""


@runtime_checkable
class WithOptions(FromSource, Protocol):
    """A policy that also answers for options of its compiler."""

    def options(self) -> list[tuple[str, str, FromSource]]:
        """The options: how each is written on the command line, what it does, and the policy under it."""


@runtime_checkable
class ByText(Protocol):
    """A policy that follows the release of its compiler that a text shows."""

    def of(self, module: Module) -> Policy:
        """The policy of that release."""


@runtime_checkable
class OfReleases(Protocol):
    """A policy that also answers for the other releases of its compiler."""

    def compares(self, module: Module) -> bool:
        """Whether a module is small enough for that."""

    def plans_of_releases(self, module: Module) -> dict[str, list[Plan]]:
        """The plans of all releases by name, the newest first; plans of releases that cannot differ on this module are the same objects."""


@runtime_checkable
class OfReleasesByPrimitives(OfReleases, Protocol):
    """One whose releases are compared on the primitives of a text of any format."""

    compares_primitives: bool


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
    """A policy by name, of the release given (``xla-cpu@jaxlib-0.4.38``, ``xla-cpu@0.4.38``, ``xla-cpu@installed``), else the one that a
    text shows, or the latest. Raises UserError for an unknown one."""
    compiler, at, release = name.partition("@")
    if compiler not in POLICIES:
        hint = did_you_mean(compiler, POLICIES) or f"the policies are: {', '.join(POLICIES)}"
        raise UserError(f"there is no fusion policy {name!r}", hint)
    if not at:
        return cast(Policy, import_module(POLICIES[name]).POLICY)
    known = releases_of(compiler)
    if release == INSTALLED:
        return known[installed_release(known, compiler)[0]]
    release = next((one for one in known if release and one.partition("-")[2] == release), release)
    if release not in known:
        names = " and ".join(f"{compiler}@{one}" for one in known)
        raise UserError(f"{compiler} is not known as of {release or 'no release'}", f"there is {names}")
    return known[release]


def follows_text(name: str) -> bool:
    """Whether a policy, where no release is named, follows the release that a text shows."""
    return isinstance(policy_named(name), ByText)


def policy_for(name: str, module: Module) -> Policy:
    """The policy for a module: by name, and where no release is named, of the release that the text shows."""
    policy = policy_named(name)
    return policy.of(module) if isinstance(policy, ByText) else policy


def installed_remark(name: str) -> list[str]:
    """Which release ``xla-cpu@installed`` means where the installed one is not known; empty for all other names."""
    compiler, _, release = name.partition("@")
    if release != INSTALLED or compiler not in POLICIES:
        return []
    nearest, found = installed_release(releases_of(compiler), compiler)
    return [] if nearest == found else [f"{found} is installed, which irscope was not compared with: {compiler}@{nearest} decides"]


def installed_release(known: Iterable[str], compiler: str) -> tuple[str, str]:
    """The known release that stands for the installed one, the same or the newest before it, and the installed one.

    Raises UserError where there is no such package, it is not installed beside irscope, or is older than all that are known.
    """
    known = list(known)
    package, dash, _ = known[0].partition("-")
    if not dash:
        raise UserError(f"{compiler}@{INSTALLED} means no release: the releases of {compiler} are those of no Python package",
                        f"name the release: {compiler}@{known[0]}")
    try:
        found = metadata.version(package)
    except metadata.PackageNotFoundError:
        raise UserError(f"{package} is not installed where irscope is, so that {compiler}@{INSTALLED} means no release",
                        f"name the release: {compiler}@{known[0]}") from None
    nearest = next((one for one in known if numbers(one) <= numbers(found)), None)
    if nearest is None:
        raise UserError(f"{package} {found} is installed, older than all releases of {compiler}", f"the oldest is {compiler}@{known[-1]}")
    return nearest, f"{package}-{found}"


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, without what follows ``+``."""
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0]))
