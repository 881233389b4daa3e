"""KRN004: more bytes through memory than are allowed."""

from __future__ import annotations

from irscope.lint.gate import Gate
from irscope.lint.planned import Planned
from irscope.lint.savings import human_bytes
from irscope.source import Finding, Note


class MaxTraffic(Gate):
    """The kernels read and write more bytes than allowed.

    ## What it does
    Adds up the bytes that the kernels of a policy read and write in one run: each distinct operand once, each result once, slices by their
    own size, loop bodies by their trips. Compares with ``--max-traffic`` (``max-traffic`` in the project's file).

    ## Why is this bad?
    Most kernels are bound by memory. Traffic grows when a fusion is lost, a broadcast or copy appears, or a dtype becomes wider.

    ## Example
    ```
    irscope lint model.hlo --policy xla-cpu --max-traffic 200MiB
    ```

    ## Use instead
    The finding names the kernels that move most; ``irscope lint --why-not-fused`` says why operators do not fuse.

    ## Known false positives
    Caches are not modelled: a value that is read twice in a row may cost once. The
    traffic of a loop with an unknown trip count is not known, and the demand not met.
    """

    code, name, option = "KRN004", "too-much-traffic", "--max-traffic"

    @classmethod
    def judge(cls, planned: Planned, limit: int) -> list[Finding]:
        """A finding when more than ``limit`` bytes move, or their number is not known."""
        if planned.unsized is not None:
            return [cls.not_known(planned.module, "the traffic is", planned.unsized)]
        if planned.traffic <= limit:
            loop = planned.open_loop
            if loop is None:
                return []
            return [cls.not_known(planned.module, "the traffic is", loop, f"%{loop[1].name} runs an unknown number of times")]
        message = f"the kernels of {planned.policy} move {human_bytes(planned.traffic)}, {human_bytes(limit)} are allowed"
        most = planned.costliest()
        roots = [(group.outputs or group.nodes)[-1] for group, _ in most]
        largest = zip(roots, most, strict=True)
        notes = tuple(Note(f"%{root.name} ({root.op.name}) moves {human_bytes(moved)}", root.loc) for root, (_, moved) in largest)
        return [cls.broken(planned.module, message, notes=notes, help="irscope lint --why-not-fused says what keeps operators apart")]
