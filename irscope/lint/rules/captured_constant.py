"""MEM006: a tensor that is neither a parameter nor a buffer was captured as a constant of an exported or traced program."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.formats.export.signature import Exported
from irscope.formats.torchscript import structure as torch
from irscope.graph import Node, TensorType, bytes_of
from irscope.lint import Context, Findings, Fixture, Rule, Severity, human_bytes
from irscope.ops.sets import torchscript

CONSTANT = "CONSTANT_TENSOR"
LIFTS = torchscript("lift_fresh lift_fresh_copy")
"""What a trace does with tensors that the program makes of Python numbers or numpy arrays."""
LARGE = 1 << 20
"""Smaller constants (masks of a few tokens, tables of frequencies) cost nothing, and are information."""
SMALL = 1 << 10
"""Below this a constant is a shape, a mean and deviation of colours, or a few numbers that the program states."""


def _program(kind: str, rows: int) -> str:
    return f"""
        ExportedProgram:
            class GraphModule(torch.nn.Module):
                def forward(self, c_table: "f32[{rows}, 1024]", x: "f32[8, 1024]"):
                    out: "f32[8, {rows}]" = torch.ops.aten.linear.default(x, c_table)
                    return (out,)

        Graph signature:
            # inputs
            c_table: {kind}
            x: USER_INPUT

            # outputs
            out: USER_OUTPUT

        Range constraints: {{}}
    """


def _trace(made: str) -> str:
    constant = "  %3 : Float(40, 64) = prim::Constant[value=<Tensor>]() # net.py:7:0" if "%3" in made else ""
    return f"""
        graph(%x : Float(8, 64), %w : Float(40, 64)):
          %none : NoneType = prim::Constant()
        {constant}
          %t : Float(40, 64) = {made}
          %y : Float(8, 40) = aten::linear(%x, %t, %none)
          return (%y)
    """


class CapturedConstant(Rule):
    """A tensor that is neither a parameter nor a buffer became a constant of an exported or traced program.

    ## What it does
    Finds inputs of kind `CONSTANT_TENSOR` in the signature of an exported program, and constants that a trace lifts into the graph
    (`aten::lift_fresh`): tensors that a module keeps as plain attributes, that `forward` closes over, or that it makes with
    `torch.tensor(...)` or `torch.from_numpy(...)`. From 1 KiB up; below 1 MiB it is information. Frozen programs, where weights are
    constants, are not reported.

    ## Why is this bad?
    `state_dict()` does not contain it, `load_state_dict()` does not replace it, and `.to(device)` does not move it: the program keeps the
    values of the export, on the device of the export. If numpy computed it from an input, the result belongs to that input.

    ## Use instead
    `self.register_buffer("table", table)` in `__init__`, with `persistent=False` where checkpoints need not contain it; or
    `nn.Parameter`, if it is trained; or an argument of `forward`.

    ## Known false positives
    Tables that never change, in a program that stays on one device.
    """

    code, name, severity = "MEM006", "captured-constant", Severity.WARNING
    timed = False
    bad = (
        Fixture.fx(_program("CONSTANT_TENSOR target='table'", 1024), "c_table"),
        Fixture.fx(_program("CONSTANT_TENSOR target='lifted_tensor_0'", 512), "c_table"),
        Fixture.torchscript(_trace("aten::lift_fresh(%3) # net.py:7:0"), "3"),
    )
    good = (
        Fixture.fx(_program("BUFFER target='table' persistent=True", 1024)),
        Fixture.fx(_program("CONSTANT_TENSOR target='table'", 0)),
        Fixture.torchscript(_trace("aten::clone(%w, %none)")),
    )

    def check(self, context: Context) -> Findings:
        for node, name in _captured(context):
            size = bytes_of(node.type)
            if size >= SMALL:
                register = f'self.register_buffer("{name.rpartition(".")[2]}", ...)' if name else "self.register_buffer(...)"
                yield self.finding(
                    context, node,
                    f"{name or f'%{node.name}'} is a constant of {human_bytes(size)}: no parameter, and no buffer",
                    help=register,
                ).with_severity(None if size >= LARGE else Severity.INFO)


def _captured(context: Context) -> Iterator[tuple[Node, str]]:
    """The tensors that a program captured, with their names in the module that was exported: a trace has none."""
    signature = Exported.of(context.module).signature
    if signature is not None:
        targets = {port.name: port.target for port in signature.inputs if port.kind == CONSTANT}
        yield from ((param, targets[param.name]) for param in context.module.main().params if param.name in targets)
    for node, graph in context.view.primitives(torch.CONSTANT):
        # A trace wraps a tensor that the user makes; weights that torch froze into the graph have no line of the user's.
        lifted = any(user.op in LIFTS for user in context.view.users(node, graph))
        if lifted and isinstance(node.type, TensorType) and node.type.rank:
            yield node, ""
