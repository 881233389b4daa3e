"""The log of Inductor's scheduler: ``TORCH_LOGS=fusion``.

    ===== attempting fusion (1/10): 7 nodes =====
    fuse_nodes_once, candidates:
      SchedulerNode(name='op1'), Pointwise(['[64, 64]', 'origins=OrderedSet([relu])', 'stack_traces = {', '  File "m.py", line 16, ...
      ExternKernelSchedulerNode(name='op2')
    cannot fuse op4 with op6: intermediate nodes between node1 & node2
    fusing op4 with op5
"""
from __future__ import annotations

import re

from irscope.fusion.logs.events import FusionLog, Operation, Step

MARK = "[__fusion] "
BEGINS = "===== attempting fusion (1/"
NODE = re.compile(r"\s+(\w+)\(name='(op\d+)'\)(?:, (\w+)\(\['\[([0-9, ]*)\]')?")
ORIGINS = re.compile(r"origins=OrderedSet\(\[([^\]]*)\]\)")
PLACE = re.compile(r'File "([^"]*)", line (\d+)')
REFUSED = re.compile(r"cannot fuse ([\w]+) with (\w+): (.*)")
FUSED = re.compile(r"fusing (\w+) with (\w+)$")


def sniff(text: str) -> bool:
    """Whether the text is such a log."""
    return MARK in text and BEGINS in text


def read(text: str, name: str) -> FusionLog:
    """The steps of each compiled graph, and the operations that its first round lists."""
    log = FusionLog("inductor", name, "Inductor")
    listing = False
    for line in text.splitlines():
        mark = line.find(MARK)
        if mark < 0:
            continue
        words = line[mark + len(MARK):]
        if words.startswith(BEGINS):
            log.runs.append([])
            log.operations.append([])
        if not log.runs:
            continue
        if words.startswith("fuse_nodes_once, candidates"):
            listing = not log.operations[-1]
        elif words.startswith("  "):
            if listing and (operation := _operation(words)) is not None:
                log.operations[-1].append(operation)
        elif (refused := REFUSED.match(words)) is not None:
            log.runs[-1].append(Step(refused[1], refused[2], words=refused[3]))
        elif (fused := FUSED.match(words)) is not None:
            log.runs[-1].append(Step(fused[1], fused[2], made=f"{fused[1]}_{fused[2]}"))
    return log


def _operation(words: str) -> Operation | None:
    found = NODE.match(words)
    if found is None:
        return None
    node, name, loops, sizes = found.groups()
    if "Nop" in node:
        return Operation(name, "nop")
    kind = "extern" if loops is None or "Extern" in node else "reduction" if "Reduction" in loops else loops.lower()
    origins = ORIGINS.search(words)
    return Operation(name, kind, tuple(int(s) for s in (sizes or "").split(",") if s.strip()),
                     tuple(o.strip() for o in origins[1].split(",")) if origins else (),
                     tuple(dict.fromkeys(f"{file}:{line}" for file, line in PLACE.findall(words))))
