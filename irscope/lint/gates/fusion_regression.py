"""FUS019: more kernels or more traffic than the stored baseline."""

from __future__ import annotations

from typing import Any

from irscope.lint.gate import Gate
from irscope.lint.planned import Planned
from irscope.lint.savings import human_bytes, saving
from irscope.source import Finding, Note

TRAFFIC_SLACK = 1.001
"""A thousandth more is no regression: exporters move single numbers about."""


class FusionRegression(Gate):
    """The policy plans more kernels, or they move more bytes, than when the baseline was written.

    ## What it does
    ``--write-baseline FILE --track-fusion`` stores, for each file, the number of kernels, the bytes that they move, and the pairs of
    operators that are not fused. A later run with ``--baseline FILE`` compares, and names the pairs that are no longer fused.

    ## Why is this bad?
    A lost fusion costs time on every run, and no test fails, because the results are the same.

    ## Example
    ```
    irscope lint exports/ --write-baseline baseline.json --track-fusion
    irscope lint exports/ --baseline baseline.json
    ```

    ## Use instead
    Check the pairs in the finding with ``irscope lint --why-not-fused``; if the change is intended, write the baseline again.

    ## Known false positives
    A new release of the compiler decides differently: the baseline stores the version of the policy, and the finding reports a difference.
    """

    code, name, option = "FUS019", "fusion-regression", "--baseline"

    @classmethod
    def judge(cls, planned: Planned, version: str, before: dict[str, Any]) -> list[Finding]:
        """A finding when kernels or traffic grew since ``before`` (what :func:`record` gave)."""
        if planned.unsized is not None:
            return [cls.not_known(planned.module, "kernels and traffic are", planned.unsized)]
        kernels, traffic = int(before["kernels"]), float(before["traffic"])
        more, moved = planned.kernels - kernels, planned.traffic - traffic
        if more <= 0 and planned.traffic <= traffic * TRAFFIC_SLACK:
            return []
        parts = [f"{planned.kernels} kernels instead of {kernels}"] if more > 0 else []
        if planned.traffic > traffic * TRAFFIC_SLACK:
            parts.append(f"{human_bytes(planned.traffic)} moved instead of {human_bytes(traffic)}")
        notes: list[Note] = []
        for pair, n in sorted(planned.apart().items(), key=lambda item: -item[1]):
            new = n - int(before["apart"].get(pair, 0))
            if new > 0 and len(notes) < 5:
                why = planned.reasons(pair)
                notes.append(Note(f"{pair}: {new} more stay apart" + (f" ({why})" if why else "")))
        if version != before["policy"]:
            notes.append(Note(f"the baseline was written for {before['policy']}, this is {version}"))
        message = f"{' and '.join(parts)} under {version}, since the baseline was written"
        finding = cls.broken(planned.module, message, notes=tuple(notes), help="irscope lint --why-not-fused tells each edge")
        finding.saves = saving(max(0.0, moved), max(0, more))
        return [finding]


def record(planned: Planned, version: str) -> dict[str, Any]:
    """What a baseline stores of a module."""
    apart = dict(sorted(planned.apart().items()))
    return {"policy": version, "kernels": planned.kernels, "traffic": planned.traffic, "apart": apart}
