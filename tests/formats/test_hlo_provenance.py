"""Where instructions come from: op_name, stack frames, old source lines, and raw attributes, found in the text when asked."""
from __future__ import annotations

from irscope.graph import SourceLine
from tests.formats.hlo_texts import FORMS, FRAMES, MODULE
from tests.formats.test_hlo_reader import fine


def test_scope_and_old_source_lines() -> None:
    module = fine(MODULE)
    nodes = {n.name: n for n in module.main().nodes}
    assert module.scope(nodes["sum"]) == "jit(f)/add" and module.scope(nodes["t"]) == ""
    assert module.call_stack(nodes["sum"]) == (SourceLine("model.py", 12, 4),) and module.call_stack(nodes["reduced"]) == ()


def test_stack_frames_count_their_parents_one_too_high() -> None:
    module = fine(FRAMES)
    p, e, n = module.main().nodes
    assert module.call_stack(e) == (SourceLine('/src/lib/"odd" name.py', 7, 4, "loss"), SourceLine("/src/train.py", 21, 8, "step"),
                                    SourceLine("/src/train.py", 40, 2, "<module>"))
    assert module.call_stack(n) == (SourceLine("/src/train.py", 40, 2, "<module>"),) and module.call_stack(p) == ()
    assert module.scope(n) == 'jit(g)/neg "quoted"'


def test_frames_that_go_in_a_circle_end() -> None:
    module = fine(FRAMES.replace("1 {file_location_id=1 parent_frame_id=1}", "1 {file_location_id=1 parent_frame_id=4}"))
    assert len(module.call_stack(module.main().nodes[1])) == 1000


def test_frames_that_are_not_there() -> None:
    module = fine(FRAMES.replace("stack_frame_id=3", "stack_frame_id=77").replace("file_location_id=1 ", "file_location_id=9 "))
    _, e, n = module.main().nodes
    assert module.call_stack(e) == () and module.call_stack(n) == ()


def test_raw_attributes() -> None:
    module = fine(FORMS["calls"])
    nodes = {n.name: n for n in module.main().nodes}
    assert dict(module.raw(nodes["c"])) == {"backend_config": '"a, b = {"'}
    module = fine(FORMS["collectives"])
    nodes = {n.name: n for n in module.main().nodes}
    assert dict(module.raw(nodes["f"])) == {"frontend_attributes": '{note="x",mesh={a = #sdy.mesh<["x"=2]>}}'}
    assert dict(module.raw(nodes["p"])) == {"sharding": "{devices=[2,1,4]<=[2,4]T(1,0) last_tile_dim_replicate}"}


def test_instructions_over_several_lines() -> None:
    text = FORMS["over_lines"].replace("operand_precision={highest, default}", 'operand_precision={highest, default},\n metadata={op_name="a/b"\n source_line=3}')
    module = fine(text)
    d = module.main().nodes[1]
    assert module.scope(d) == "a/b" and dict(module.raw(d)) == {"metadata": '{op_name="a/b"\n source_line=3}'}
    assert module.scope(module.main().nodes[0]) == ""


def test_what_stands_in_an_operand_list_has_no_attributes_of_its_own() -> None:
    module = fine(FORMS["nested_operands"].replace("f32[] constant(3)))", 'f32[] constant(3))), metadata={op_name="all"}'))
    assert [module.scope(n) for n in module.main().nodes] == ["", "", "", "", "", "all"]
    module = fine(FORMS["elements"].replace("negate(p#0)", 'negate(p#0), metadata={op_name="n"}'))
    assert [module.scope(n) for n in module.main().nodes if n.synthetic] == ["", "", "", ""]


def test_the_wrapped_instruction_of_async_sugar_has_the_metadata_of_its_start() -> None:
    module = fine(FORMS["asynchronous"].replace("slice={[1:3]}", 'slice={[1:3]}, metadata={op_name="cut"}'))
    start = module.main().nodes[1]
    assert module.scope(start) == "cut" and module.scope(start.bodies[0].result()) == "cut"
