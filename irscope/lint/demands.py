"""The user's demands on a module beyond the rules: budgets, fusions, dtypes; from options or from the project's file."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from irscope.analysis.survey import Survey
from irscope.fusion import AUTO
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
    """Budgets are None if not set; sizes are bytes. ``machine`` names a machine table, or its file."""

    policy: str = AUTO
    device: str | None = None
    machine: str = ""
    max_kernels: int | None = None
    max_traffic: int | None = None
    max_memory: int | None = None
    require_fused: tuple[str, ...] = ()
    expect_dtype: str = ""
    where: str = ""

    def over(self, more: dict[str, object]) -> Demands:
        """These demands overridden by those in ``more`` (by field; None and empty values do not override)."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return Demands(**{**own, **{name: value for name, value in more.items() if value not in (None, "", ())}})

    @property
    def settings(self) -> Settings:
        """The policy and the machine, for the findings of rules."""
        return Settings(self.policy, self.device, self.machine)

    @property
    def plans(self) -> bool:
        """Whether a fusion plan is needed."""
        return self.max_kernels is not None or self.max_traffic is not None or bool(self.require_fused)

    @property
    def exist(self) -> bool:
        """Whether anything is demanded of a module."""
        return self.plans or self.max_memory is not None or bool(self.expect_dtype)

    def judge(self, module: Module, planned: Planned | None = None) -> list[Finding]:
        """The findings for broken demands. Raises UserError if a demand cannot be checked."""
        findings: list[Finding] = []
        if self.plans:
            planned = planned or Planned(module, self.settings.of(module).policy, self.device)
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
