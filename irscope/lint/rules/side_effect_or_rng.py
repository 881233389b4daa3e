"""FUS008: random numbers or an effect between operators that would be one kernel."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.graph import Graph, Kind, Node
from irscope.lint.context import Context
from irscope.lint.findings import RuleFinding
from irscope.lint.rule import Fixture, Rule
from irscope.source import Note, Severity

ANNOTATIONS = ("Sharding", "SPMD", "Shard", "annotate_device", "MoveTo")
"""Targets of calls that only say where something lies begin like this."""
HOST = frozenset(("outfeed", "infeed", "send", "recv"))


class SideEffectOrRng(Rule):
    """An effect, or a random number with several users, stands between elementwise operators.

    ## What it does
    Finds `rng` whose result has more than one user, `outfeed`, `infeed`, `send` and `recv`, and custom calls that declare a side effect,
    where an operand is computed elementwise. Prints and host callbacks are such calls.

    ## Why is this bad?
    Nothing fuses across an effect. Random numbers must not be drawn twice, so that what uses them twice has to store them; a print left
    over from a search for a mistake waits for the host in every run.

    ## Example
    ```
    %c = () custom-call(%y), custom_call_target="xla_python_cpu_callback", custom_call_has_side_effect=true
    ```

    ## Use instead
    Remove `jax.debug.print`; split keys so that each use draws its own numbers (`jax.random.split`).

    ## Known false positives
    Feeds that are the purpose of the program.
    """

    code, name, severity, default = "FUS008", "side-effect-or-rng", Severity.WARNING, False
    structural = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              a = f32[] constant(0)
              b = f32[] constant(1)
              n = f32[1024] rng(a, b), distribution=rng_uniform
              x = f32[1024] negate(n)
              y = f32[1024] exponential(n)
              ROOT r = f32[1024] add(x, y)
            }
        """,
            "n",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[1024] parameter(0)
              y = f32[1024] tanh(x)
              c = () custom-call(y), custom_call_target="print", custom_call_has_side_effect=true
              ROOT r = f32[1024] negate(y)
            }
        """,
            "c",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              a = f32[] constant(0)
              b = f32[] constant(1)
              n = f32[1024] rng(a, b), distribution=rng_uniform
              ROOT x = f32[1024] negate(n)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[1024] parameter(0)
              y = f32[1024] tanh(x)
              c = f32[1024] custom-call(y), custom_call_target="blas"
              ROOT r = f32[1024] negate(c)
            }
        """),
    )

    def check(self, context: Context) -> Iterator[RuleFinding]:
        for node, graph in context.primitives("rng", "custom-call", *sorted(HOST)):
            evidence = self._evidence(context, graph, node)
            if evidence:
                notes = tuple(Note(f"%{o.name} ends in memory for it", o.loc) for o in node.operands if o.op.kind is Kind.ELEMENTWISE)
                yield context.finding(self, node, graph, evidence, notes=notes, help=_HELP.get(node.op.name, "is it needed in every run?"))

    def _evidence(self, context: Context, graph: Graph, node: Node) -> str:
        """What the node does that keeps others apart, in words; empty for nothing."""
        users = context.users(node, graph)
        if node.op.name == "rng":
            return f"%{node.name} is drawn once and used by {len(users)} operations, so it is stored" if len(users) > 1 else ""
        if not any(o.op.kind is Kind.ELEMENTWISE for o in node.operands):
            return ""
        if node.op.name in HOST:
            return f"{node.op.name} speaks with the host, and nothing fuses across it"
        target = str(node.attrs.get("custom_call_target", "a custom call"))
        if node.attrs.get("custom_call_has_side_effect") is True and not target.startswith(ANNOTATIONS):
            return f"{target} has a side effect, and nothing fuses across it"
        return ""


_HELP = {"rng": "draw for each use: split the key"}
