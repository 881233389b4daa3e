"""The log of XLA's CPU fusion pass: ``TF_CPP_VMODULE=instruction_fusion=5,cpu_instruction_fusion=3``.

    Considering fusion of: %add.11 = f32[32,128]{1,0} add(%mul.15, %add.10), ... with operand add.10
    not fusing operand %rsqrt.0 = f32[32]{0} rsqrt(%add.0), ... because Fusion is not profitable.
    Fusing %add.10 = ... into %add.11 = ...
           created new fusion: %broadcast_add_fusion = ...
"""
from __future__ import annotations

import re

from irscope.fusion.logs.events import FusionLog, LoggedStep

LINE = re.compile(r"instruction_fusion\.cc:\d+\] ?(.*)")
NAMED = re.compile(r"\s*%?([\w.\-]+)")
END = "Fusion count:"
"""The line that ends one run of the pass."""


def sniff(text: str) -> bool:
    """Whether the text is such a log."""
    return "instruction_fusion.cc:" in text


def read(text: str, name: str) -> FusionLog:
    """The steps of each run. Skips lines of other passes."""
    log = FusionLog("xla-cpu", name, "XLA")
    steps: list[LoggedStep] = []
    considered = ""
    fusing: tuple[str, str] | None = None
    for line in text.splitlines():
        found = LINE.search(line)
        if found is None:
            continue
        words = found[1]
        if fusing is not None and not words.lstrip().startswith("created new fusion:"):
            steps.append(LoggedStep(*fusing, made=fusing[1]))
            fusing = None
        if words.startswith("Considering fusion of: "):
            considered = _name(words[len("Considering fusion of: "):])
        elif words.startswith("not fusing operand "):
            producer, reason = _refused(words[len("not fusing operand "):])
            steps.append(LoggedStep(_name(producer), considered, words=reason))
        elif words.startswith("Operand (") and words.endswith(") is not fusible"):
            steps.append(LoggedStep(_name(words[len("Operand ("):]), considered, words=words))
        elif words.startswith("Fusing %") and " into %" in words:
            producer, _, consumer = words[len("Fusing "):].rpartition(" into %")
            fusing = (_name(producer), _name(consumer))
        elif fusing is not None:
            steps.append(LoggedStep(*fusing, made=_name(words.partition(":")[2])))
            fusing = None
        elif words.startswith(END):
            log.runs.append(steps)
            steps = []
    if fusing is not None:
        steps.append(LoggedStep(*fusing, made=fusing[1]))
    if steps:
        log.runs.append(steps)
    return log


def _refused(text: str) -> tuple[str, str]:
    """The instruction and the reason of ``INSTRUCTION because REASON``; one reason contains that word itself ("Bailing because ...")."""
    said, _, reason = text.rpartition(" because ")
    before, own, word = said.rpartition(" because ")
    return (before, f"{word} because {reason}") if own and word == "Bailing" else (said, reason)


def _name(text: str) -> str:
    found = NAMED.match(text)
    return found[1] if found is not None else ""
