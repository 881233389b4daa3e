"""What a user demands of a module beyond the rules: budgets, fusions, dtypes; from options or from the project's file."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from irscope.analysis.survey import Survey
from irscope.graph import Module
from irscope.lint.gates.expect_dtype import ExpectDtype
from irscope.lint.gates.max_kernels import MaxKernels
from irscope.lint.gates.max_memory import MaxMemory
from irscope.lint.gates.max_traffic import MaxTraffic
from irscope.lint.gates.require_fused import RequireFused
from irscope.lint.planned import Planned
from irscope.lint.settings import Settings
from irscope.query import parse
from irscope.source import Finding


@dataclass(frozen=True, slots=True)
class Demands:
    """Budgets are None where there are none; sizes are bytes. ``machine`` names a table of what time costs, or its file."""

    policy: str = "irscope"
    device: str | None = None
    machine: str = ""
    max_kernels: int | None = None
    max_traffic: int | None = None
    max_memory: int | None = None
    require_fused: tuple[str, ...] = ()
    expect_dtype: str = ""
    where: str = ""

    def over(self, more: dict[str, Any]) -> Demands:
        """These demands with those that ``more`` gives (by field; None and empty ones are no demand) in their place."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return Demands(**{**own, **{name: value for name, value in more.items() if value not in (None, "", ())}})

    @property
    def settings(self) -> Settings:
        """Whose rules and what time costs, for the findings of rules."""
        return Settings(self.policy, self.device, self.machine)

    @property
    def plans(self) -> bool:
        """Whether a fusion policy must be asked."""
        return self.max_kernels is not None or self.max_traffic is not None or bool(self.require_fused)

    @property
    def exist(self) -> bool:
        """Whether anything is demanded of a module."""
        return self.plans or self.max_memory is not None or bool(self.expect_dtype)

    def judge(self, module: Module, planned: Planned | None = None) -> list[Finding]:
        """What in a module is against the demands. Raises UserError where that cannot be told."""
        findings: list[Finding] = []
        if self.plans:
            planned = planned or Planned(module, self.policy, self.device)
            if self.max_kernels is not None:
                findings += MaxKernels.judge(planned, self.max_kernels)
            if self.max_traffic is not None:
                findings += MaxTraffic.judge(planned, self.max_traffic)
            for pattern in self.require_fused:
                findings += RequireFused.judge(planned, pattern)
        if self.max_memory is not None:
            findings += MaxMemory.judge(module, self.max_memory)
        if self.expect_dtype:
            findings += ExpectDtype.judge(module, self.expect_dtype, _picked(module, self.where))
        return findings


def _picked(module: Module, where: str) -> list[Any] | None:
    if not where:
        return None
    return [node for _, node in parse(where).select(Survey(module))]
