"""MEM006: a large tensor that is neither a parameter nor a buffer was captured as a constant of an exported program."""

from __future__ import annotations

from irscope.formats.export.dialect import EXPORT
from irscope.formats.export.signature import Exported
from irscope.graph import bytes_of
from irscope.lint import Context, Findings, Fix, Fixture, Rule, human_bytes
from irscope.source import Severity

CONSTANT = "CONSTANT_TENSOR"
LARGE = 1 << 20
"""Smaller constants (masks of a few tokens, tables of frequencies) cost nothing."""


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


class CapturedConstant(Rule):
    """A large tensor that is neither a parameter nor a buffer became a constant of an exported program.

    ## What it does
    Finds inputs of kind `CONSTANT_TENSOR` of more than 1 MiB in the signature of an exported program: tensors that a module keeps as plain
    attributes, that `forward` closes over, or that it makes with `torch.tensor(...)` from Python numbers.

    ## Why is this bad?
    `state_dict()` does not contain it, `load_state_dict()` does not replace it, and `.to(device)` does not move it: the program keeps the
    values of the export, on the device of the export.

    ## Use instead
    `self.register_buffer("table", table)` in `__init__`, with `persistent=False` where checkpoints need not contain it; or
    `nn.Parameter`, if it is trained; or an argument of `forward`.

    ## Known false positives
    Tables that never change, in a program that stays on one device.
    """

    code, name, severity = "MEM006", "captured-constant", Severity.WARNING
    formats = ("export",)
    fix = Fix.HINT
    timed = False
    dialect = EXPORT
    bad = (
        Fixture.fx(_program("CONSTANT_TENSOR target='table'", 1024), "c_table"),
        Fixture.fx(_program("CONSTANT_TENSOR target='lifted_tensor_0'", 512), "c_table"),
    )
    good = (
        Fixture.fx(_program("BUFFER target='table' persistent=True", 1024)),
        Fixture.fx(_program("CONSTANT_TENSOR target='table'", 8)),
    )

    def check(self, context: Context) -> Findings:
        signature = Exported.of(context.module).signature
        if signature is None:
            return
        captured = {port.name: port.target for port in signature.inputs if port.kind == CONSTANT}
        for param in context.module.main().params:
            size = bytes_of(param.type)
            if param.name in captured and size >= LARGE:
                yield self.finding(
                    context, param,
                    f"{captured[param.name]} is a constant of {human_bytes(size)}: no parameter, and no buffer",
                    help=f'self.register_buffer("{captured[param.name].rpartition(".")[2]}", ...)')
