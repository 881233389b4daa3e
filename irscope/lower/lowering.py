"""Lowers a primitive module to a program: buffers for values, kernels for groups, steps for loops and branches."""
from __future__ import annotations

from irscope.graph import Module
from irscope.lower import assembly, control
from irscope.lower.faults import cannot_run
from irscope.lower.graph_lowering import ModuleLowering
from irscope.lower.inline import NoScalarMeaning
from irscope.lower.kernels import Tuner
from irscope.lower.options import Options
from irscope.lower.program import Program
from irscope.ops import hlo


def lower(module: Module, options: Options | None = None, tuner: Tuner | None = None) -> Program:
    """Lower a primitive module with known shapes to a program. Raises UserError for an operator that cannot run here.

    A ``tuner`` chooses among schedules; without one the rules choose.
    """
    try:
        return Lowering(module, options or Options(), tuner).run()
    except NoScalarMeaning as fault:
        raise cannot_run(module, fault.node, f"it is in {fault.graph.name}, which runs once per element, and {fault.why}") from None


class Lowering(ModuleLowering):
    """Extends :class:`ModuleLowering` with handlers for the operators that become separate steps."""

    handlers = {
        hlo.while_: control.loop, hlo.conditional: control.switch,
        hlo.concatenate: assembly.join, hlo.pad: assembly.join, hlo.dynamic_update_slice: assembly.update,
    }
