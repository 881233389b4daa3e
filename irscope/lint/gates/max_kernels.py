"""KRN003: more kernels than are allowed."""

from __future__ import annotations

from irscope.lint.gate import Gate
from irscope.lint.planned import Planned
from irscope.source import Finding


class MaxKernels(Gate):
    """The policy makes more kernels of the entry than were allowed.

    ## What it does
    Counts the kernels that a fusion policy makes of the entry, and compares with ``--max-kernels`` (``max-kernels`` in the project's file).

    ## Why is this bad?
    Each kernel is a launch, and what passes between two kernels goes through memory. A count that grew without anybody wanting it is
    the earliest sign of a fusion that was lost.

    ## Example
    ```
    irscope lint model.hlo --policy xla-cpu --max-kernels 12
    ```

    ## Use instead
    ``irscope lint --why-not-fused`` says which operators stay apart and why; when the new count is right, write it into the budget.

    ## Known false positives
    The count follows the policy, and the policy a release of its compiler: after an upgrade of the compiler, look at the count again.
    """

    code, name, option = "KRN003", "too-many-kernels", "--max-kernels"

    @classmethod
    def judge(cls, planned: Planned, limit: int) -> list[Finding]:
        """A finding when there are more than ``limit``."""
        if planned.kernels <= limit:
            return []
        module = planned.module
        kernels = f"{planned.kernels} kernel{'s' if planned.kernels != 1 else ''}"
        message = f"{planned.policy} makes {kernels} of {module.entry}, {limit} are allowed"
        return [cls.broken(module, message, help="irscope lint --why-not-fused says what keeps operators apart")]
