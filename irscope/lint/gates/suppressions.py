"""CFG001, CFG002: suppressions in the project's file that suppress nothing, or whose time is over."""

from __future__ import annotations

from irscope.lint.gate import Gate
from irscope.source import Severity


class UnusedSuppression(Gate):
    """A suppression in the project's file matched no finding.

    ## What it does
    Warns of each ``[[tool.irscope.suppress]]`` that fits none of the findings of the files that were looked at. One with a ``path`` is
    judged only when a file of that path was looked at.

    ## Why is this bad?
    What it was written for is mended or has moved; the next finding that happens to fit would be hidden without anybody having decided so.

    ## Example
    ```
    [[tool.irscope.suppress]]
    rule = "BRD001"
    path = "exports/decoder.hlo"
    reason = "the mask is small"
    ```

    ## Use instead
    Delete it.

    ## Known false positives
    A run over a part of the models does not meet what a suppression without a ``path`` is for; give it one.
    """

    code, name, severity, option = "CFG001", "unused-suppression", Severity.WARNING, "suppress"
    formats = ()


class ExpiredSuppression(Gate):
    """The date until which a suppression was to hold has passed.

    ## What it does
    Warns of each ``[[tool.irscope.suppress]]`` whose ``until`` lies in the past. It suppresses nothing any more.

    ## Why is this bad?
    Somebody meant to come back to it by that day.

    ## Example
    ```
    [[tool.irscope.suppress]]
    rule = "DTY001"
    reason = "the exporter is being repaired"
    until = 2026-03-01
    ```

    ## Use instead
    Mend what it hides and delete it, or give it a new date and a reason for that.

    ## Known false positives
    None.
    """

    code, name, severity, option = "CFG002", "expired-suppression", Severity.WARNING, "suppress"
    formats = ()
