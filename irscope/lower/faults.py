"""Errors for operators that cannot run here, with help."""
from __future__ import annotations

from irscope.graph import Module, Node
from irscope.ops.attributes import CustomCall
from irscope.source import Finding, Severity, UserError

_WHY: dict[str, tuple[str, str]] = {
    "rng": ("its numbers come from the hidden state of a device, so there is nothing to reproduce",
            "give the numbers as an input, or draw them from a key (rng-bit-generator, jax.random); for dropout in torch, call eval() "
            "before the graph is made"),
    "rng-get-and-update-state": ("it reads the hidden state of a device's random numbers", "give the state as an input"),
    "infeed": ("it reads from a host queue that this program does not have", "give the value as an input of the program"),
    "outfeed": ("it writes to a host queue that this program does not have", "return the value from the program"),
    "send": ("it talks to another program", "run the part of the graph that is between sends and receives"),
    "recv": ("it talks to another program", "run the part of the graph that is between sends and receives"),
    "stochastic-convert": ("no CPU program of XLA has it", "use convert"),
    "custom-call": ("it calls into a library that irscope does not know", "run the graph before the compiler put that call into it"),
}


def cannot_run(module: Module, node: Node, why: str = "", help: str = "") -> UserError:
    """The error for an operator that has no meaning on this machine."""
    written = node.origin[0] if node.origin else node
    target = CustomCall.of(written).custom_call_target
    what = f"custom-call to {target!r}" if target else written.op.name
    unknown = ("irscope has no compiled meaning for it", "")
    names = (op.name.removesuffix("-done").removesuffix("-start") for op in (written.op, node.op))
    known_why, known_help = next((_WHY[name] for name in names if name in _WHY), unknown)
    message = f"%{written.name} ({what}) cannot run here: {why or known_why}"
    source = module.source if module.source.text else None
    stack = module.call_stack(written)
    finding = Finding("KRN001", "cannot-run", Severity.ERROR, message, source, written.loc, len(written.name) + 1, node=written.name,
                      graph=module.entry, help=help or known_help, source_line=str(stack[0]) if stack else "")
    return UserError(f"%{written.name} cannot run", findings=[finding])
