"""FUS021: a conversion, reshape or transpose is between a convolution or product and its activation."""

from __future__ import annotations

from collections.abc import Container

from irscope.analysis.values import FILLS, number, written
from irscope.graph import Graph, Kind, Node
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity
from irscope.lint.collect import gains
from irscope.lint.rules.cast_between import CastBetween
from irscope.lint.rules.reshape_or_transpose_between import ReshapeOrTransposeBetween
from irscope.ops import hlo

BETWEEN = {hlo.convert: (hlo.convolution, hlo.dot), hlo.reshape: (hlo.convolution,), hlo.transpose: (hlo.convolution,)}
"""The operators between, each with the products that it follows. A reshape of a dot does not count: it merges dimensions."""
ACTIVATIONS = hlo.named("maximum minimum clamp tanh logistic erf exponential exponential-minus-one log-plus-one")
STEPS = 8
"""The most operators of an activation before the one that identifies it."""
MOST = 4
"""The most conversions, reshapes and transposes in a row."""

_CONVOLUTION = """
    ENTRY e {{
      x = f32[4,32,28,28] parameter(0)
      w = f32[64,32,3,3] parameter(1)
      c = f32[4,64,28,28] convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=bf01_oi01->bf01
      {0}
    }}
"""
_TORCH = """
            graph(%x : Float(4, 32, 28, 28), %w : Float(64, 32, 3, 3), %b : Float(64)):
              %one : int = prim::Constant[value=1]()
              %zero : int = prim::Constant[value=0]()
              %two : int = prim::Constant[value=2]()
              %none : NoneType = prim::Constant()
              %last : int = prim::Constant[value=-1]()
              %ones : int[] = prim::ListConstruct(%one, %one)
              %c : Float(4, 64, 28, 28) = aten::conv2d(%x, %w, %b, %ones, %ones, %ones, %one)
              {0}
              return (%y)
        """
_RELAY = """
            def @main(%x: Tensor[(4, 32, 28, 28), float32], %w: Tensor[(64, 32, 3, 3), float32]) {{
              %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=64, kernel_size=[3, 3]);
              {0}
            }}
        """


class ActivationAfterMovement(Rule):
    """A conversion, reshape or transpose is between a convolution or product and its activation.

    ## What it does
    Finds convolutions whose result, also with a bias, is converted, reshaped or transposed and then goes through an activation: a ReLU, a
    sigmoid, a GELU, an exponential, of the result and numbers alone. After matrix products it finds conversions only. What cast-between
    and reshape-or-transpose-between report with a saving is not repeated.

    ## Why is this bad?
    Libraries and compilers apply an activation to the result of a convolution while it is in registers, if it follows directly. Whether
    this compiler loses anything by the operator between them depends on its rules: `--why-not-fused` answers it.

    ## Use instead
    The activation first: `relu(conv(x)).reshape(...)`, `relu(conv(x)).to(bfloat16)`.

    ## Known false positives
    Compilers that move the operator out of the way, for which the order makes no difference.
    """

    code, name, severity = "FUS021", "activation-after-movement", Severity.INFO
    structural = True
    bad = (
        Fixture.hlo(
            _CONVOLUTION.format("""r = f32[4,64,784] reshape(c)
      z = f32[] constant(0)
      b = f32[4,64,784] broadcast(z), dimensions={}
      ROOT y = f32[4,64,784] maximum(r, b)"""),
            "r",
        ),
        Fixture.hlo(
            _CONVOLUTION.format("""h = bf16[4,64,28,28] convert(c)
      ROOT y = bf16[4,64,28,28] tanh(h)"""),
            "h",
        ),
        Fixture.torchscript(
            _TORCH.format("""%r : Float(4, 64, 784) = aten::flatten(%c, %two, %last)
              %y : Float(4, 64, 784) = aten::relu(%r)"""),
            "r",
        ),
        Fixture.relay(_RELAY.format('%1 = cast(%0, dtype="bfloat16");\n              %2 = nn.relu(%1);\n              %2'), "1"),
    )
    good = (
        Fixture.hlo(
            _CONVOLUTION.format("""t = f32[4,64,28,28] tanh(c)
      ROOT y = f32[4,64,784] reshape(t)""")
        ),
        Fixture.hlo(
            _CONVOLUTION.format("""r = f32[4,64,784] reshape(c)
      k = f32[] constant(0.1)
      b = f32[4,64,784] broadcast(k), dimensions={}
      ROOT y = f32[4,64,784] multiply(r, b)""")
        ),
        Fixture.torchscript("""
            graph(%x : Half(64, 128), %w : Half(128, 128)):
              %how : str = prim::Constant[value="none"]()
              %d : Half(64, 128) = aten::mm(%x, %w)
              %y : Half(64, 128) = aten::gelu(%d, %how)
              return (%y)
        """),
        Fixture.torchscript("""
            graph(%x : Float(4, 32, 28), %w : Float(64, 32, 3), %b : Float(64)):
              %one : int = prim::Constant[value=1]()
              %ones : int[] = prim::ListConstruct(%one)
              %c : Float(4, 64, 28) = aten::conv1d(%x, %w, %b, %ones, %ones, %ones, %one)
              %y : Float(4, 64, 28) = aten::relu(%c)
              return (%y)
        """),
        Fixture.hlo(
            _CONVOLUTION.format("""r = f32[4,64,784] reshape(c)
      s = f32[4,64,784] parameter(2)
      ROOT y = f32[4,64,784] add(r, s)""")
        ),
        Fixture.torchscript(
            _TORCH.format("""%a : Float(4, 64, 28, 28) = aten::relu(%c)
              %y : Float(4, 64, 784) = aten::flatten(%a, %two, %last)""")
        ),
        Fixture.relay(_RELAY.format('%1 = nn.relu(%0);\n              cast(%1, dtype="bfloat16")')),
    )

    def check(self, context: Context) -> Findings:
        if context.view.optimised:
            return
        others = (*CastBetween.found_in(context), *ReshapeOrTransposeBetween.found_in(context))
        priced = {(found.graph, found.node): found for found in others if found.saves is not None}
        for first, graph in context.view.primitives(*BETWEEN):
            place = _place(context, graph, first)
            if place is None:
                continue
            anchor, _, active = place
            other = next((priced[key] for node in (first, *place[1:]) if (key := (graph.name, node.name)) in priced), None)
            if other is not None and gains(other):
                continue
            fact = self.finding(
                context, first,
                f"%{first.name} ({first.op.name}) is between %{anchor.name} ({anchor.op.name}) and its activation %{active.name} "
                f"({active.op.name})",
                notes=(Note(f"%{anchor.name} is here", anchor.loc), Note(f"%{active.name} is here", active.loc)),
                help=f"apply the activation first, and {first.op.name} its result",
            )
            fact.saves = dict(other.saves) if other is not None and other.saves is not None else None
            yield fact


def _place(context: Context, graph: Graph, first: Node) -> tuple[Node, Node, Node] | None:
    """The convolution or product before a conversion or movement, the last of those in a row, and the activation after it."""
    anchor = _anchor(first)
    if anchor.op not in BETWEEN[first.op]:
        return None
    last = _last(context, graph, first)
    if any(user.op.kind is not Kind.ELEMENTWISE for user in context.view.users(last, graph)):
        return None
    active = _activation(context.view.survey.users(graph), last)
    if active is None or (first.origin and written(first) in map(written, (anchor, first.operands[0], active))):
        return None  # the conversion or movement belongs to the operator of the text before or after it
    return anchor, last, active


def _anchor(first: Node) -> Node:
    """What computes the operand, also with a bias added: a spread vector."""
    source = first.operands[0]
    if source.op is hlo.add:
        biases = [operand for operand in source.operands if operand.op in FILLS]
        source = next((operand for operand in source.operands if operand not in biases), source) if biases else source
    return source


def _last(context: Context, graph: Graph, first: Node) -> Node:
    """The last of the conversions, reshapes and transposes in a row that begin with a node."""
    last = first
    for _ in range(MOST):
        after = context.view.only_user(last, graph)
        if after is None or after.op not in BETWEEN:
            break
        last = after
    return last


def _activation(users: list[list[Node]], value: Node) -> Node | None:
    """The operator that makes what reads a value an activation, which nothing but the value and numbers go into.

    It is the first operator of a ReLU; the error function or hyperbolic tangent of a GELU comes a few later.
    """
    reached = dict.fromkeys([value])
    todo = [value]
    for at in todo:
        for user in users[at.index]:
            if user in reached or not _reads_only(user, reached) or len(reached) > STEPS:
                continue
            if user.op in ACTIVATIONS:
                return user
            reached[user] = None
            todo.append(user)
    return None


def _reads_only(user: Node, values: Container[Node]) -> bool:
    """Whether an elementwise operator reads nothing but these values and numbers."""
    if user.op.kind is not Kind.ELEMENTWISE or user.op is hlo.convert:
        return False
    return all(operand in values or number(operand) is not None for operand in user.operands)
