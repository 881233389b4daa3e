"""The settings of an evaluation: the fusion policy, its device, and the machine for time estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from irscope.fusion import AUTO, compiler_of, origin_of
from irscope.graph import Module
from irscope.lint.machine import BUILT_IN, DEFAULT, Machine, machine_named

ScalarLoops = Callable[[Module], Iterable[tuple[str, tuple[str, ...], int, bool]]]
"""Gives the kernels of a module that compute without vectors: the name, the user's nodes, the steps, and whether its end depends on data.

The room that compiles lies beside this one; the command brings it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """``policy`` and ``device`` as for ``--why-not-fused``; ``machine`` names a table or its file (empty: the one that fits the policy).

    ``loops`` looks at compiled kernels, for the rule that asks for them. ``why``: what in the text chose the policy, where none was named.
    """

    policy: str = AUTO
    device: str | None = None
    machine: str = ""
    loops: ScalarLoops | None = None
    why: str = ""

    def of(self, module: Module) -> Settings:
        """These settings with the policy of the compiler that a module comes from, where none is named."""
        if self.policy != AUTO:
            return self
        origin = origin_of(module, self.device)
        return replace(self, policy=origin.policy, why=origin.why)

    @property
    def compiler(self) -> str:
        """The policy without its release."""
        return compiler_of(self.policy)

    @property
    def has_table(self) -> bool:
        """Whether a table says what the device takes: not for a GPU of a target text, unless a machine is named."""
        return bool(self.machine) or self.compiler != "xla-gpu" or self.device is None or self.device.lower() in BUILT_IN

    def table(self) -> Machine:
        """The machine's table: the one that is named, else that of the policy's device, else one core. UserError where there is none.

        For a device without a table it is that of an H100, whose times nothing may claim (:attr:`has_table`).
        """
        if self.machine:
            return machine_named(self.machine)
        if self.compiler == "xla-gpu":
            return machine_named(self.device.lower() if self.device is not None and self.device.lower() in BUILT_IN else "h100")
        return machine_named(DEFAULT)
