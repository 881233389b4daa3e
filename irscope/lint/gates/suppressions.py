"""CFG001, CFG002: suppressions in the project's file that suppress nothing, or have expired."""

from __future__ import annotations

from irscope.lint.gate import Gate
from irscope.source import Severity


class UnusedSuppression(Gate):
    """A suppression in the project's file matched no finding.

    ## What it does
    Warns of each ``[[tool.irscope.suppress]]`` that matches no finding in the linted files. One with a ``path`` is checked only if a file
    of that path was linted.

    ## Why is this bad?
    The finding it was written for is fixed or has moved; the suppression could hide the next finding that happens to match.

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
    A run over part of the models may not include the finding that a suppression without a ``path`` is for; give it one.
    """

    code, name, severity, option = "CFG001", "unused-suppression", Severity.WARNING, "suppress"
    formats = ()


class ExpiredSuppression(Gate):
    """The expiry date of a suppression has passed.

    ## What it does
    Warns of each ``[[tool.irscope.suppress]]`` whose ``until`` is in the past. It no longer suppresses anything.

    ## Why is this bad?
    The finding was meant to be fixed by that day.

    ## Example
    ```
    [[tool.irscope.suppress]]
    rule = "DTY001"
    reason = "the exporter is being repaired"
    until = 2026-03-01
    ```

    ## Use instead
    Fix the finding and delete the suppression, or give it a new date and a reason.

    ## Known false positives
    None.
    """

    code, name, severity, option = "CFG002", "expired-suppression", Severity.WARNING, "suppress"
    formats = ()
