"""Whether XLA's softmax rewriter matches a recognised composite, under the policy ``xla-gpu`` of the latest release."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from irscope.analysis.recognise.parts import Composite
from irscope.fusion import policy_named
from irscope.fusion.xla.gpu_device import device_named
from irscope.fusion.xla.normalised import decisions, in_text
from irscope.fusion.xla.softmax import Decision, Diamond, bails_out
from irscope.graph import Graph, Node
from irscope.lint.context import Context
from irscope.source import Note, UserError


@dataclass(frozen=True, slots=True)
class Answer:
    """``refused`` are XLA's words and the cause, None where every reduction is taken; ``node`` is to blame, ``reduce`` what it is about."""

    node: Node
    reduce: Node
    refused: str | None = None
    help: str = ""


class SoftmaxRewriter:
    """The decisions of the rewriter for a module. It runs once, when the first composite is queried."""

    def __init__(self, context: Context) -> None:
        latest = context.settings.compiler == "xla-gpu" and policy_named(context.settings.policy) is policy_named("xla-gpu")
        self._applies = latest and context.module.dialect.primitive
        self._device = device_named(context.settings.device) if self._applies else None
        self._context = context

    def answer(self, found: Composite, graph: Graph) -> Answer | None:
        """What becomes of a composite; None under other policies, and where none of its reductions is broadcast back."""
        if self._device is None:
            return None
        known = self._decisions
        own = {mine: node for node in found.nodes if (mine := self._context.view.original(node, graph)) in known and mine is not None}
        reductions = sorted(own, key=lambda node: own[node].index)
        if not reductions:
            return None
        first = reductions[0]
        if words := bails_out(self._device):
            return Answer(first, first, words, "compile for a newer device")
        for node in reductions:
            decision = known[node]
            if not isinstance(decision, Diamond) and decision.at.node is not None:
                return Answer(in_text(decision.at.node), node, f'"{decision.words}": {decision.cause}', decision.way_out)
        return Answer(first, first)

    def notes(self, found: Composite, graph: Graph) -> tuple[Note, ...]:
        """The decision about a near miss, as notes for its finding."""
        answer = self.answer(found, graph)
        if answer is None:
            return ()
        if answer.refused is None:
            says = "XLA's softmax rewriter makes Triton kernels of its reductions all the same, where its cost model agrees"
            return (Note(says, answer.node.loc),)
        return (Note(f"XLA's softmax rewriter does not take %{answer.reduce.name}: {answer.refused}", answer.node.loc),)

    @cached_property
    def _decisions(self) -> dict[Node, Decision]:
        try:
            return dict(decisions(self._context.module))
        except UserError:
            return {}
