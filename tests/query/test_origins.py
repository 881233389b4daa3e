"""What a reader finds in an instruction is told with the user's own line, through old metadata and through stack frames."""
from __future__ import annotations

import pytest

import irscope

OLD = ', metadata={op_name="jit(f)/op" source_file="/u/model.py" source_line=12}'
NEW = ', metadata={op_name="jit(f)/op" stack_frame_id=1}'
TABLES = """FileNames
1 "/u/model.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=12 end_line=12 column=0 end_column=0}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

"""


@pytest.mark.parametrize("metadata", [OLD, NEW])
@pytest.mark.parametrize(("right_side", "code"), [
    ("f32[2] negatee(a)", "HLO003"), ("f32[2] negate(q)", "HLO004"), ("f32[2] reverse(a), dimensions={0}, index=1", "HLO008"),
    ("f32[2] transpose(a)", "HLO009"), ("f32[2] negate(a, a)", "HLO012"), ("f32[2] negate(a), colour=red", "HLO007"),
    ("f32[2] call(a), to_apply=gone", "HLO006"),
])
def test_findings_of_the_reader_name_the_users_line(right_side: str, code: str, metadata: str) -> None:
    text = f"HloModule m\n\n{TABLES if metadata is NEW else ''}ENTRY e {{\n  a = f32[2] parameter(0)\n  ROOT n = {right_side}{metadata}\n}}\n"
    found = {finding.code: finding for finding in irscope.load(text).findings}
    assert found[code].source_line.startswith("/u/model.py:12")
    assert "from: /u/model.py:12" in found[code].render()


def test_what_stands_between_instructions_has_no_line() -> None:
    text = f"HloModule m, is_scheduled=maybe\n\nENTRY e {{\n  a = f32[2] parameter(0)\n  ROOT n = f32[2] negate(a){OLD}\n}}\n}}\n"
    findings = irscope.load(text).findings
    assert len(findings) >= 2 and not any(finding.source_line for finding in findings)
