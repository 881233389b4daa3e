"""What XLA's GemmFusion makes of the dots of a text, reported in sentences and edge by edge."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from irscope.fusion.plan import EdgeVerdict, Plan
from irscope.fusion.xla.gemm.grow import Asked
from irscope.fusion.xla.gemm.products import GemmSettings, Product, rewrite
from irscope.fusion.xla.gemm.rules import No
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.normalised import in_text, is_early, judged
from irscope.fusion.xla.softmax import bails_out
from irscope.fusion.xla.stage import computations
from irscope.graph import Module, Node
from irscope.graph.collector import collector_paused
from irscope.ops import hlo
from irscope.ops.module_attributes import HloModule
from irscope.source import UserError

PASS = "XLA's GemmFusion, which runs before this pass"
SHOWN = 3
"""The number of products that are named; a model repeats them layer by layer."""
SMALL = 4
"""Instructions that are named before a product, and after it."""
RUN_BEFORE = ('"__triton_gemm', "__cublas$")
"""Operators that show that XLA has run the pass already, or has lowered products to cuBLAS."""
HERE = "the kernels reported here are those with it"
ELSEWHERE = "the kernels reported here are those without it"
THEN = ("afterwards XLA's autotuner times each of these kernels on the device, and may have cuBLAS compute the product, with what is "
        "around it in separate kernels, which is not simulated")
UNNAMED = hlo.named("parameter constant broadcast")
"""Operators that are not listed among the fused ones: they cost nothing."""


@dataclass(frozen=True, slots=True)
class ProductEdge:
    """One edge next to a product of the text: ``dot`` is the product; ``no`` why ``left``, one end, stays outside of its kernel (None:
    both are inside). ``is_made`` says whether the product has a kernel at all; ``also`` are the names of both ends in a text that was
    rewritten first and, if the user is inside of the kernel, those with the kernel's own.
    """

    graph: str
    producer: Node
    consumer: Node
    dot: Node
    left: Node
    no: No | None
    is_made: bool
    also: tuple[tuple[str, str], ...] = ()

    @property
    def cause(self) -> str:
        """What the pass decides about the edge, and why."""
        dot = f"%{self.dot.name}"
        if self.no is None:
            return f"{PASS}, would compute both in the Triton kernel of {dot}; this text is judged as it is, without that kernel"
        words = f'"{self.no.words}": ' if self.no.words else ""
        why = self.no.cause(self.producer, self.consumer) if self.is_made else self.no.cause(self.dot, self.dot)
        left = f"leaves %{self.left.name} outside of the Triton kernel of {dot}" if self.is_made else f"makes no Triton kernel of {dot}"
        return f"{PASS}, {left}: {words}{why}"

    @property
    def way_out(self) -> str:
        """The smallest edit that would put both into one kernel; empty if none is known."""
        if self.no is None:
            return "none is needed"
        return self.no.way_out(self.producer, self.consumer) if self.is_made else self.no.way_out(self.dot, self.dot)


@dataclass(frozen=True, slots=True)
class Multiplied:
    """The decisions on the products of a module, in text order, and on the edges around them."""

    products: tuple[Product, ...]
    edges: tuple[ProductEdge, ...]


@lru_cache(maxsize=2)
def products_of(module: Module, device: Device, rewritten: Module | None = None) -> Multiplied:
    """The decisions of the pass on a module; empty if it has no products, if XLA has run the pass already, if it does not run on the
    device, and if the text elides something that matters.

    ``rewritten`` is the module as XLA's GPU compiler rewrites it. Without it, a text from before the rewriting is rewritten as XLA does for
    every target.
    """
    if not module.dialect.primitive or any(sign in module.source.text for sign in RUN_BEFORE) or bails_out(device) \
            or not any(node.op is hlo.dot for graph in module.graphs.values() for node in graph.nodes):
        return Multiplied((), ())
    products: list[Product] = []
    edges: list[ProductEdge] = []
    try:
        with collector_paused():
            settings = GemmSettings(simplified=rewritten is not None or not is_early(module))
            for graph in computations(rewritten or judged(module)):
                for product in rewrite(Computation.of(graph), device, settings):
                    products.append(product)
                    edges += _edges(graph.name, product)
    except UserError:
        return Multiplied((), ())
    return Multiplied(tuple(products), tuple(edges))


def is_to_come(module: Module) -> bool:
    """Whether XLA printed a text and has yet to make kernels of its products, so that they are put in place before the verdicts.

    A text that was written by hand is judged as it is.
    """
    return HloModule.of(module).entry_computation_layout is not None and not any(sign in module.source.text for sign in RUN_BEFORE)


def _edges(graph: str, product: Product) -> Iterator[ProductEdge]:
    dot = _node(product.dot)
    if dot is None:
        return
    asked = product.asked
    if not product.is_made:
        asked = [Asked(operand, product.dot, product.no) for operand in product.dot.operands] + \
            [Asked(product.dot, user, product.no) for user in product.readers]
    whole = product.kernel.output.name if product.kernel is not None and product.kernel.output is not None else product.dot.name
    for one in asked:
        producer, consumer = _node(one.producer), _node(one.consumer)
        if producer is not None and consumer is not None and producer is not consumer:
            also = (one.producer.name, one.consumer.name), *(() if one.behind or one.no is None else ((one.producer.name, whole),))
            yield ProductEdge(graph, producer, consumer, dot, consumer if one.behind else producer, one.no, product.is_made, also)


def _node(instruction: Instruction) -> Node | None:
    """The node of the text; for a kernel that was made before, the node whose value it computes."""
    while instruction.node is None and instruction.body is not None:
        instruction = instruction.body.root
    return in_text(instruction.node) if instruction.node is not None else None


def report_products(plans: list[Plan], module: Module, device: Device, rewritten: Module | None = None) -> list[Plan]:
    """Add to the unfused edges next to a product the decision of the earlier pass; XLA's words of this pass stay.

    An instruction next to several products counts as outside if one of them leaves it there.
    """
    known: dict[tuple[str, str, str], ProductEdge] = {}
    for edge in products_of(module, device, rewritten).edges:
        names = ((edge.producer.name, edge.consumer.name), *(edge.also if rewritten is not None else ()))
        for key in ((edge.graph, *pair) for pair in dict.fromkeys(names)):
            if key not in known or (known[key].no is None and edge.no is not None):
                known[key] = edge
    return [replace(plan, verdicts=[_with_cause(verdict, known) for verdict in plan.verdicts]) for plan in plans] if known else plans


def _with_cause(verdict: EdgeVerdict, known: dict[tuple[str, str, str], ProductEdge]) -> EdgeVerdict:
    edge = known.get((verdict.graph.name, *verdict.names))
    if edge is None or verdict.fused != "none":
        return verdict
    return replace(verdict, cause=edge.cause)


def multiplications(module: Module, device: Device, rewritten: Module | None = None) -> list[str]:
    """One remark on which products become Triton kernels, and with what; none if there are no products or XLA has run the pass."""
    products = products_of(module, device, rewritten).products
    if not products:
        return []
    made = [p for p in products if p.is_made]
    left = [p for p in products if not p.is_made]
    parts = [f"{PASS}, makes a Triton kernel of {len(made)} of {len(products)} matrix products"]
    if made:
        parts[0] += ": " + _some([_shown(p) for p in made])
        parts.append(f"{THEN}; {HERE if is_to_come(module) else ELSEWHERE}")
    if left:
        parts.append("not of " + _some([_refused(p) for p in left]))
    return ["; ".join(parts)]


def _shown(product: Product) -> str:
    """A product with the instructions in its kernel."""
    before: dict[str, None] = {}
    behind: dict[str, None] = {}
    dot = _node(product.dot)
    for asked in product.asked:
        if asked.no is None:
            node = _node(asked.consumer if asked.behind else asked.producer)
            if node is not None and node.op not in UNNAMED and node is not dot:
                (behind if asked.behind else before)[node.name] = None
    parts = [f"{_named(list(names))} {where}" for names, where in ((before, "in front"), (behind, "behind")) if names]
    return f"%{_name(product)} with {' and '.join(parts)}" if parts else f"%{_name(product)} alone"


def _refused(product: Product) -> str:
    node, no = _node(product.dot), product.no
    if node is None or no is None:
        return f"%{_name(product)}"
    words = f'"{no.words}", ' if no.words else ""
    return f"%{node.name} ({words}{no.cause(node, node)})"


def _name(product: Product) -> str:
    node = _node(product.dot)
    return node.name if node is not None else product.dot.name


def _named(names: list[str]) -> str:
    more = f" and {len(names) - SMALL} more" if len(names) > SMALL else ""
    return ", ".join(f"%{name}" for name in names[:SMALL]) + more


def _some(parts: list[str]) -> str:
    more = f" and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""
    return "; ".join(parts[:SHOWN]) + more
