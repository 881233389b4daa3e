"""One random program, judged by XLA or torch: irscope, with two threads, must give what they give."""
from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from irscope.analysis.rounding import coarsest_types
from irscope.backends.comparison import compare_all
from irscope.source import UserError
from tests.programs.arrays import Array, arrays_of
from tests.programs.judge import Refused, compiled, judge, primitive, shared_among_threads
from tests.programs.left_out import cause_of
from tests.programs.peers import PeerRefused, by_torch, by_xla, traced
from tests.programs.program import Program
from tests.programs.verdict import Verdict


def judge_by_peer(program: Program, seed: int = 0) -> Verdict:
    """A program against its peer; Relay, which has none that can be installed, against the reference alone.

    ``invalid``: the peer refuses it. ``left-out``: it departs from the definition there.
    """
    if program.format == "relay":
        return judge(program, seed)
    cause = cause_of(program)
    if cause is not None:
        return Verdict("left-out", cause)
    began = time.process_time()
    arrays = arrays_of(program, seed)
    try:
        expected = (by_xla if program.format == "hlo" else by_torch)(program.text(), arrays)
    except PeerRefused as refused:
        return Verdict("invalid", str(refused)[:400])
    verdict = against(program, arrays, expected, "")
    if verdict.kind == "same" and program.format == "torchscript":
        try:
            text = traced(program.text(), arrays)
        except PeerRefused as refused:
            return Verdict("invalid", f"the trace: {refused}"[:400])
        # A trace drops inputs that nothing reads; names of inputs are those of the trace.
        verdict = against(replace(program, write=Fixed(text)), arrays, expected, "traced: ")
    return replace(verdict, seconds=time.process_time() - began)


class Fixed:
    """Writes a program as the text that is given."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self, program: Program) -> str:
        return self.text


def against(program: Program, arrays: list[Array], expected: list[Array], word: str) -> Verdict:
    """irscope's results against the peer's."""
    try:
        with shared_among_threads(), np.errstate(all="ignore"):
            module, given = primitive(program, arrays)
            got = compiled(module, 2)(*given)
            way = coarsest_types(module)
    except (UserError, Refused) as refused:
        return Verdict("refused", word + str(refused).split("\n")[0][:300])
    faults = [c.fault for c in compare_all(got, expected, way=way, flushed=module.flushes_denormals) if c.fault is not None]
    if faults or len(got) != len(expected):
        return Verdict("differs", word + (faults[0] if faults else f"{len(got)} results instead of {len(expected)}"), word)
    return Verdict("same")
