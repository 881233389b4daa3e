"""ALG003: a result that nothing uses."""

from __future__ import annotations

from irscope.graph import Graph, Node, TensorType, bytes_of, kept
from irscope.lint import Context, Findings, Fixture, Rule, Severity, plural, saving
from irscope.ops import hlo
from irscope.ops.module_attributes import Prepared

CHEAP = hlo.named("constant iota tuple get-tuple-element broadcast parameter")
"""Operators that cost nothing if unused, such as further elements of the tuple that a loop or a library call returns."""
LISTED = 5


class DeadCode(Rule):
    """Neither the result nor a side effect needs the value (dead code).

    ## What it does
    Reports the last node of each unused subgraph, with the number of nodes that only it needs. Reports unused parameters as information,
    all in one finding; ignores constants, unused tuple elements, and parameters and buffers that an exported program keeps with it (tied
    weights, counters of batches).

    ## Why is this bad?
    The work is wasted if no later pass removes it, and it often indicates a mistake: a forgotten output, a disconnected branch.

    ## Use instead
    Return the value, or delete what computes it.

    ## Known false positives
    Text from before optimisation contains dead code that the compiler removes.
    """

    code, name, severity = "ALG003", "dead-code", Severity.WARNING
    passes = ("remove-dead",)
    tidied = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              p = f32[8] parameter(0)
              a = f32[8] negate(p)
              d = f32[8] exponential(a)
              ROOT r = f32[8] abs(p)
            }
        """,
            "d",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              p = f32[8] parameter(0)
              q = f32[8] parameter(1)
              ROOT r = f32[8] abs(p)
            }
        """,
            "q",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(256, 256)):
              %a : Float(256, 256) = aten::tanh(%x)
              %y : Float(256, 256) = aten::neg(%x)
              return (%y)
        """,
            "a",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(256, 256), float32], %z: Tensor[(256, 256), float32]) {
              tanh(%x)
            }
        """,
            "z",
        ),
    )
    good = (
        Fixture.fx("""
            ExportedProgram:
                class GraphModule(torch.nn.Module):
                    def forward(self, b_norm_num_batches_tracked: "i64[]", x: "f32[8]"):
                        tanh: "f32[8]" = torch.ops.aten.tanh.default(x)
                        return (tanh,)

            Graph signature:
                # inputs
                b_norm_num_batches_tracked: BUFFER target='norm.num_batches_tracked' persistent=True
                x: USER_INPUT

                # outputs
                tanh: USER_OUTPUT

            Range constraints: {}
        """),
        Fixture.hlo("""
            ENTRY e {
              p = f32[8] parameter(0)
              a = f32[8] negate(p)
              ROOT r = f32[8] abs(a)
            }
        """),
        Fixture.hlo("""
            less {
              a = f32[] parameter(0)
              b = f32[] parameter(1)
              c = s32[] parameter(2)
              d = s32[] parameter(3)
              ROOT l = pred[] compare(a, b), direction=LT
            }
            ENTRY e {
              p = f32[8] parameter(0)
              i = s32[8] iota(), iota_dimension=0
              s = (f32[8], s32[8]) sort(p, i), dimensions={0}, to_apply=less
              values = f32[8] get-tuple-element(s), index=0
              ROOT order = s32[8] get-tuple-element(s), index=1
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              p = f32[8] parameter(0)
              t = token[] after-all()
              o = token[] outfeed(p, t)
              ROOT r = f32[8] abs(p)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(256, 256)):
              %a : Float(256, 256) = aten::tanh(%x)
              %y : Float(256, 256) = aten::neg(%a)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(256, 256), float32], %z: Tensor[(256, 256), float32]) {
              add(%x, %z)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        lasting: dict[Graph, bool] = {}
        for graph in context.view.graphs:
            alive = kept(graph, lasting=lasting)
            dead = [n for n in graph.nodes if not alive[n.index] and n.op is not hlo.after_all]
            for node in [n for n in dead if not context.view.users(n, graph)]:
                chain = _kept_for(node, alive)
                if all(n.op in CHEAP for n in chain):
                    continue
                written = sum(bytes_of(n.type) for n in chain)
                more = f", with {plural(len(chain) - 1, 'more node')} kept for it" if len(chain) > 1 else ""
                yield self.finding(
                    context, node,
                    f"nothing uses %{node.name}{more}",
                    help="return it, or delete it in the model",
                    saves=saving(bytes=float(written), kernels=1.0),
                )
        yield from self._parameters(context, context.module.main())

    def _parameters(self, context: Context, entry: Graph) -> Findings:
        """One finding for the parameters of the program that nothing uses."""
        state = Prepared.of(context.module).weights
        unused = [p for p in entry.params if not context.view.users(p, entry) and p is not entry.root and isinstance(p.type, TensorType)
                  and p.name not in state]
        if unused:
            names = ", ".join(f"%{p.name}" for p in unused[:LISTED])
            more = f" and {len(unused) - LISTED} more" if len(unused) > LISTED else ""
            said = f"parameter {names} is not used" if len(unused) == 1 else f"{len(unused)} parameters are not used: {names}{more}"
            yield self.finding(context, unused[0], said).with_severity(Severity.INFO)


def _kept_for(end: Node, alive: list[bool]) -> list[Node]:
    """The dead nodes that ``end`` needs, including itself, in the order of the text. Operands of a live node are live."""
    kept = {end}
    stack = [end]
    while stack:
        more = {operand for operand in stack.pop().operands if not alive[operand.index]} - kept
        kept |= more
        stack += more
    return sorted((node for node in kept if node.op is not hlo.after_all), key=lambda node: node.index)
