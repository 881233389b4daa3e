"""The fusion plans of a policy for a module, with the policy's release and its limits."""

from __future__ import annotations

from collections.abc import Iterable

from irscope.analysis.values import written
from irscope.expand import expand
from irscope.expand.torchscript.constants import elided_constants
from irscope.fusion import AsWritten, EdgeVerdict, Plan, compiler_of, installed_remark, policy_for, policy_named, uncompared
from irscope.fusion.recorded import Recorded, recorded_plans
from irscope.graph import Module, Node, Typing, callees_first
from irscope.lint.view import ModuleView
from irscope.source import UserError
from irscope.version import __version__

APART = ("all", "some", "none")
"""How far apart an edge keeps two operators."""


def plans(module: Module, policy: str, device: str | None = None, expanded: bool = False) -> list[Plan]:
    """What a policy makes of the entry and of what it calls. HLO is judged as written where the policy wants that, else its primitives.

    ``expanded``: the module was made by :func:`expand`, which need not be done again.
    The module is sound enough for policies (:mod:`irscope.analysis.soundness`). Raises UserError for operators that do not expand.
    """
    chosen = policy_for(policy, module)
    recorded = recorded_plans(module)
    if recorded is not None:
        return recorded
    if device is not None and compiler_of(policy) != "xla-gpu":
        hint = getattr(chosen, "elsewhere", "it belongs to xla-gpu")
        raise UserError(f"--device {device} means nothing to the policy {policy}", hint)
    if isinstance(chosen, AsWritten):
        return chosen.plan_module(module if reads_text(policy, module) else expand(module, outline=True), device)
    primitive = module if expanded else expand(module, outline=True)
    scalar = ModuleView(primitive).scalar_bodies
    return [chosen.plan(graph) for graph in callees_first(primitive, primitive.main()) if graph not in scalar]


def reads_text(policy: str, module: Module) -> bool:
    """Whether a policy judges the operators of the text, rather than its primitives. HLO is its own primitives, but for what it calls."""
    return module.dialect.primitive or module.dialect is getattr(policy_named(policy), "dialect", None)


def furthest_apart(verdicts: Iterable[EdgeVerdict]) -> dict[tuple[Node, Node], EdgeVerdict]:
    """Of the verdicts on edges between two operators of the text, the first that keeps them furthest apart.

    Edges between the primitives of one operator are left out.
    """
    found: dict[tuple[Node, Node], EdgeVerdict] = {}
    for verdict in verdicts:
        ends = written(verdict.producer), written(verdict.consumer)
        before = found.get(ends)
        if ends[0] is not ends[1] and (before is None or APART.index(verdict.fused) > APART.index(before.fused)):
            found[ends] = verdict
    return found


def version_of(policy: str, module: Module | None = None) -> str:
    """The policy by name, and the release of the compiler that it follows (of a module: the one that its text shows); of irscope's own,
    irscope's."""
    chosen = policy_named(policy) if module is None else policy_for(policy, module)
    return chosen.version if isinstance(chosen, AsWritten) else f"{chosen.name}@{__version__}"


def remarks(module: Module, policy: str, device: str | None = None) -> list[str]:
    """How far a policy that works on the text as written can be trusted on this text, and for this device."""
    record = Recorded.of(module).fusion_record
    if record is not None:
        return [f"the verdicts are recorded, not predicted: {record.compiler} decided so, by " + ", ".join(record.files)]
    chosen = policy_for(policy, module)
    own = chosen.remarks(module, device) + uncompared(chosen, module) if isinstance(chosen, AsWritten) else []
    return elided(module) + installed_remark(policy) + own


def elided(module: Module) -> list[str]:
    """That some tensors are known by their types alone; empty where all values are in the text."""
    if module.dialect.typing is not Typing.EXECUTED:
        return []
    hidden = [f"%{node.name}" for node in elided_constants(module)]
    names = ", ".join(hidden[:3])
    return [f"the text elides the values of {len(hidden)} constants ({names}): they are taken for inputs of their types, which is all that "
            "fusion asks of them"] if hidden else []
