"""Chooses from recorded cases the few that every run of the tests repeats:

    python -m tests.oracle.choose_cases cases.npz tests/data/torch_operators.npz
    python -m tests.oracle.choose_cases cases.npz tests/data/torch_operators_more.npz tests/data/torch_operators.npz     (what the last has not)

For each operator the smallest cases of different element types; only such as irscope is meant to run (see test_torch_operators.LIMITS).
"""
from __future__ import annotations

import sys
from collections import defaultdict

from tests.oracle.test_torch_operators import ANY_OF_EQUALS, said
from tests.oracle.torch_cases import Case, by_reference, differences, read_cases, write_cases

PER_OPERATOR = 4


def size(case: Case) -> int:
    return sum(a.nbytes for a in (*case.inputs, *case.outputs)) + len(case.text)


def main(source: str, target: str, *others: str) -> None:
    chosen: list[Case] = []
    taken: defaultdict[tuple[str, str], int] = defaultdict(int)
    counts: defaultdict[str, int] = defaultdict(int, {op: PER_OPERATOR for other in others for c in read_cases(other) for op in c.operators()})
    for case in sorted(read_cases(source), key=size):
        kind = case.inputs[0].dtype.name
        if all(a.size == 0 for a in case.outputs):
            continue
        wanted = [op for op in case.operators() if counts[op] < PER_OPERATOR and taken[op, kind] < 2]
        if not wanted or len(case.text) > 8000 or said(case):
            continue
        # What is repeated is compared to the last place.
        if case.name in ANY_OF_EQUALS and differences(by_reference(case), case.outputs):
            continue
        chosen.append(case)
        for op in case.operators():
            taken[op, kind] += 1
            counts[op] += 1
    write_cases(target, chosen)
    print(f"{len(chosen)} cases of {len(counts)} operators")


if __name__ == "__main__":
    main(*sys.argv[1:])
