"""FUS008: a side effect or random numbers between operators that could fuse."""

from __future__ import annotations

from irscope.analysis.values import is_annotation
from irscope.graph import Graph, Kind, Node, TensorType
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity
from irscope.ops import hlo
from irscope.ops.attributes import CustomCall, GetTupleElement
from irscope.ops.sets import relay, torchscript

KEYED = relay("random.uniform random.normal random.multinomial random.threefry_generate random.threefry_split")
"""What gives the next key beside the numbers."""
DRAWS = torchscript("rand rand_like randn randn_like randint bernoulli normal") | KEYED
PRINTS = torchscript("prim::Print") | relay("debug")
LISTED = 3
NEEDED = "is it needed in every run?"
HOST = (hlo.infeed, hlo.outfeed, hlo.recv, hlo.send)


class SideEffectOrRng(Rule):
    """A side effect, or random numbers with several users, between elementwise operators that could fuse.

    ## What it does
    Finds `rng` whose result has more than one user, `outfeed`, `infeed`, `send` and `recv`, and custom calls that declare a side effect,
    if an operand is computed elementwise. Prints and host callbacks are such calls. In TorchScript and Relay, random draws
    (`aten::rand_like`, `random.uniform`) with several users, and prints of tensors.

    ## Why is this bad?
    Nothing fuses across a side effect. Random numbers must not be drawn twice, so with several users they must be stored; a print left
    over from debugging waits for the host in every run.

    ## Use instead
    Remove `jax.debug.print`; split keys so that each use draws its own numbers (`jax.random.split`).

    ## Known false positives
    Infeeds and outfeeds that the program needs.
    """

    code, name, severity = "FUS008", "side-effect-or-rng", Severity.WARNING
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
        Fixture.torchscript(
            """
            graph(%x : Float(8, 8)):
              %none : NoneType = prim::Constant()
              %a : Float(8, 8) = aten::rand_like(%x, %none, %none, %none, %none, %none)
              %b : Float(8, 8) = aten::neg(%a)
              %c : Float(8, 8) = aten::mul(%a, %b)
              return (%c)
        """,
            "a",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(64, 64), float32], %k: Tensor[(10), uint64]) {
              %0 = random.uniform(%k, 0f, 1f, out_shape=[64, 64], out_dtype="float32");
              %1 = %0.1;
              %2 = add(%x, %1);
              %3 = multiply(%2, %1);
              %3
            }
        """,
            "0",
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
        Fixture.torchscript("""
            graph(%x : Float(8, 8)):
              %none : NoneType = prim::Constant()
              %a : Float(8, 8) = aten::rand_like(%x, %none, %none, %none, %none, %none)
              %b : Float(8, 8) = aten::neg(%a)
              return (%b)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(64, 64), float32], %k: Tensor[(10), uint64]) {
              %0 = random.uniform(%k, 0f, 1f, out_shape=[64, 64], out_dtype="float32");
              %1 = %0.1;
              add(%x, %1)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        if not context.module.dialect.primitive:
            yield from self._as_written(context)
            return
        for node, graph in context.view.primitives(hlo.rng, hlo.custom_call, *HOST):
            evidence = self._evidence(context, graph, node)
            if evidence:
                help = "draw for each use: split the key" if node.op is hlo.rng else NEEDED
                notes = tuple(Note(f"%{o.name} is stored for it", o.loc) for o in node.operands if o.op.kind is Kind.ELEMENTWISE)
                yield self.finding(context, node, evidence, notes=notes, help=help)

    def _evidence(self, context: Context, graph: Graph, node: Node) -> str:
        """Why the node prevents fusion, as text; empty if it does not."""
        users = context.view.users(node, graph)
        if node.op is hlo.rng:
            return f"%{node.name} is drawn once and used by {len(users)} operations, so it is stored" if len(users) > 1 else ""
        if not any(o.op.kind is Kind.ELEMENTWISE for o in node.operands):
            return ""
        if node.op in HOST:
            return f"{node.op.name} communicates with the host, and nothing fuses across it"
        call = CustomCall.of(node)
        if call.custom_call_has_side_effect and not is_annotation(node):
            return f"{call.custom_call_target} has a side effect, and nothing fuses across it"
        return ""

    def _as_written(self, context: Context) -> Findings:
        """Random draws with several users, and prints, in TorchScript and Relay."""
        for graph in context.view.graphs:
            for node in graph.nodes:
                if node.op in PRINTS and any(isinstance(o.type, TensorType) and o.operands for o in node.operands):
                    said = f"{node.op.name} prints tensors in every run"
                    yield self.finding(context, node, said, help=NEEDED)
                elif node.op in DRAWS:
                    users = _users(context, graph, node)
                    if len(users) > 1:
                        said = f"%{node.name} is drawn once and used by {len(users)} operations, so it is stored"
                        notes = tuple(Note(f"%{user.name} ({user.op.name}) uses it", user.loc) for user in users[:LISTED])
                        yield self.finding(context, node, said, notes=notes, help="draw for each use, if their numbers may differ")


def _users(context: Context, graph: Graph, node: Node) -> list[Node]:
    """The users of the numbers, through tuple elements (the first element of Relay's tuple is the next key)."""
    users = context.view.users(node, graph)
    if node.op in KEYED:
        parts = [user for user in users if user.op is hlo.get_tuple_element and GetTupleElement.of(user).index == 1]
        users = [user for part in parts for user in context.view.users(part, graph)]
    return users

