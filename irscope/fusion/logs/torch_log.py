"""The log of Inductor's scheduler: ``TORCH_LOGS=fusion``.

    ===== attempting fusion (1/10): 7 nodes =====
    fuse_nodes_once, candidates:
      SchedulerNode(name='op1'), Pointwise(['[64, 64]', 'origins=OrderedSet([relu])', 'stack_traces = {', '  File "m.py", line 16, ...
      ExternKernelSchedulerNode(name='op2')
    cannot fuse op4 with op6: intermediate nodes between node1 & node2
    fusing op4 with op5
"""
from __future__ import annotations

from irscope.formats.inductor.fusion_log import BEGINS, FusionRun, take
from irscope.fusion.logs.events import FusionLog, LoggedStep

MARK = "[__fusion] "


def sniff(text: str) -> bool:
    """Whether the text is such a log."""
    return MARK in text and BEGINS in text


def read(text: str, name: str) -> FusionLog:
    """The steps of each compiled graph, and the scheduler nodes that its first round lists."""
    runs: list[FusionRun] = []
    for line in text.splitlines():
        mark = line.find(MARK)
        if mark >= 0:
            words = line[mark + len(MARK):]
            if words.startswith(BEGINS):
                runs.append(FusionRun())
            if runs:
                take(runs[-1], words)
    log = FusionLog("inductor", name, "Inductor")
    for run in runs:
        log.operations.append(run.candidates)
        log.runs.append([LoggedStep(d.a, d.b, made=f"{d.a}_{d.b}") if d.reason is None else LoggedStep(d.a, d.b, words=d.reason)
                         for d in run.decisions])
    return log
