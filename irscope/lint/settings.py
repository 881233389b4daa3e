"""How findings are judged: whose fusion rules, for which device, and what time costs on which machine."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.lint.machine import BUILT_IN, DEFAULT, Machine, machine_named

POLICY = "irscope"


@dataclass(frozen=True, slots=True)
class Settings:
    """``policy`` and ``device`` as for ``--why-not-fused``; ``machine`` names a table or its file (empty: the one that fits the policy)."""

    policy: str = POLICY
    device: str | None = None
    machine: str = ""

    def table(self) -> Machine:
        """The machine's table: the one that is named, else that of the policy's device, else one core. UserError where there is none."""
        if self.machine:
            return machine_named(self.machine)
        if self.policy == "xla-gpu":
            return machine_named(self.device.lower() if self.device is not None and self.device.lower() in BUILT_IN else "h100")
        return machine_named(DEFAULT)
