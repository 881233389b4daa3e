"""KRN003: more kernels than are allowed."""

from __future__ import annotations

from irscope.lint.gate import Gate
from irscope.lint.planned import Planned
from irscope.source import Finding


class MaxKernels(Gate):
    """The policy plans more kernels for the entry than allowed.

    ## What it does
    Counts the kernels that a fusion policy plans for the entry, and compares with ``--max-kernels`` (``max-kernels`` in the project file).

    ## Why is this bad?
    Each kernel is a launch, and values between kernels go through memory. An unintended rise of the count is the earliest sign of a lost
    fusion.

    ## Example
    ```
    irscope lint model.hlo --policy xla-cpu --max-kernels 12
    ```

    ## Use instead
    ``irscope lint --why-not-fused`` says which operators do not fuse and why; if the new count is right, change the budget.

    ## Known false positives
    The count depends on the policy, which follows one release of its compiler: check the count again after an upgrade of the compiler.
    """

    code, name, option = "KRN003", "too-many-kernels", "--max-kernels"

    @classmethod
    def judge(cls, planned: Planned, limit: int) -> list[Finding]:
        """A finding when there are more than ``limit``, or their number is not known."""
        if planned.unsized is not None:
            return [cls.not_known(planned.module, "the number of kernels is", planned.unsized)]
        if planned.kernels <= limit:
            return []
        module = planned.module
        kernels = f"{planned.kernels} kernel{'s' if planned.kernels != 1 else ''}"
        message = f"{planned.policy} makes {kernels} of {module.entry}, {limit} are allowed"
        return [cls.broken(module, message, help="irscope lint --why-not-fused says what keeps operators apart")]
