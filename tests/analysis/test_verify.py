"""Rules that span operators: where memory is passed on its layout stays; both ends of a transfer agree."""
from __future__ import annotations

from types import ModuleType

import pytest

import irscope
from irscope.analysis.verify import layouts, pairs

ROWS, COLUMNS = "f32[2,3]{1,0}", "f32[2,3]{0,1}"
BODY = "f {{\n  p = {0} parameter(0)\n  ROOT n = {1} negate(p)\n}}\n"


def module(lines: str, before: str = "", header: str = ", is_scheduled=true") -> str:
    return f"HloModule m{header}\n{before}ENTRY e {{\n  " + "\n  ".join(lines.strip().split("\n")) + "\n}\n"


def faults(rule: ModuleType, text: str) -> list[tuple[str, str]]:
    """The instruction and the message of each fault."""
    return [(fault.node.name, fault.message) for _, fault in rule.check(irscope.load(text, format="hlo").module())]


# The second of two operands or elements differs, so that a rule which compares the first pair alone finds nothing.
MOVED = {
    "elementwise": (f"x = {COLUMNS} parameter(0)\ny = {ROWS} parameter(1)\nr = {COLUMNS} add(x, y)", "r"),
    "tuple": (f"x = {ROWS} parameter(0)\ny = {ROWS} parameter(1)\nr = ({ROWS}, {COLUMNS}) tuple(x, y)", "r"),
    "element of a tuple": (f"x = ({ROWS}, {COLUMNS}) parameter(0)\nr = {ROWS} get-tuple-element(x), index=1", "r"),
    "nested tuple": (f"x = (({ROWS}, {COLUMNS})) parameter(0)\nr = (({ROWS}, {ROWS})) opt-barrier(x)", "r"),
    "asynchronous copy, target": (f"x = {ROWS} parameter(0)\ns = ({COLUMNS}, {ROWS}, u32[]) copy-start(x)\nr = {ROWS} copy-done(s)", "r"),
    "asynchronous copy, within": (f"x = {ROWS} parameter(0)\ns = ({COLUMNS}, {ROWS}, u32[]) copy-start(x)\nr = {COLUMNS} copy-done(s)", "r"),
    "asynchronous copy, source": (f"x = {ROWS} parameter(0)\nr = ({ROWS}, {COLUMNS}, u32[]) copy-start(x)", "r"),
    "all-to-all": (f"x = {ROWS} parameter(0)\ny = {COLUMNS} parameter(1)\nr = ({ROWS}, {ROWS}) all-to-all(x, y), replica_groups={{}}", "r"),
    "call": (f"x = {ROWS} parameter(0)\nr = {COLUMNS} call(x), to_apply=f", "r"),
    "asynchronous call, operand": (f"x = {COLUMNS} parameter(0)\nr = (({ROWS}), {ROWS}, u32[]) async-start(x), calls=f", "r"),
    "asynchronous call, parameter": (f"x = {COLUMNS} parameter(0)\nr = (({COLUMNS}), {ROWS}, u32[]) async-start(x), calls=f", "r"),
    "asynchronous call, result": (f"x = {ROWS} parameter(0)\nr = (({ROWS}), {COLUMNS}) async-start(x), calls=f", "r"),
    "end of an asynchronous call": (f"s = (({ROWS}), {COLUMNS}, u32[]) parameter(0)\nr = {ROWS} async-done(s)", "r"),
}


@pytest.mark.parametrize("name", MOVED)
def test_a_layout_changes_only_where_something_moves(name: str) -> None:
    lines, place = MOVED[name]
    text = module(lines, BODY.format(ROWS, ROWS))
    found = faults(layouts, text)
    assert [node for node, _ in found] == [place]
    assert COLUMNS in found[0][1] and ROWS in found[0][1]
    assert faults(layouts, text.replace(COLUMNS, ROWS)) == []
    assert faults(layouts, text.replace(COLUMNS, "f32[2,3]")) == [], "an order that is not stated agrees with any"


def test_a_loop_passes_on_the_result_of_its_body_and_not_of_its_condition() -> None:
    loop = f"c {{\n  p = {ROWS} parameter(0)\n  ROOT b = pred[] constant(true)\n}}\n"
    lines = f"x = {ROWS} parameter(0)\nr = {ROWS} while(x), condition=c, body=f"
    assert faults(layouts, module(lines, loop + BODY.format(ROWS, ROWS))) == []
    assert [node for node, _ in faults(layouts, module(lines, loop + BODY.format(COLUMNS, COLUMNS)))] == ["r"]


@pytest.mark.parametrize("lines", [
    f"x = {ROWS} parameter(0)\nr = {COLUMNS} copy(x)",
    f"x = {ROWS} parameter(0)\nr = f32[3,2]{{0,1}} transpose(x), dimensions={{1,0}}",
    "x = f32[6]{0} parameter(0)\ny = (f32[6]{0}, f32[6]{0}) tuple(x, x)",
    f"x = {COLUMNS} parameter(0)\nr = (({ROWS})) async-start(x), calls=f",
    f"x = {ROWS} parameter(0)\nr = ({COLUMNS}, u32[]) async-start(x), calls=f",
    f"x = {ROWS} parameter(0)\nr = {COLUMNS} async-done(x)",
    f"x = ({ROWS}) parameter(0)\nr = {COLUMNS} async-done(x)",
    f"r = {COLUMNS} async-done()",
    f"x = {ROWS} parameter(0)\nr = {COLUMNS} copy-done(x)",
    f"x = ({ROWS}) parameter(0)\nr = {COLUMNS} copy-done(x)",
    f"x = ({ROWS}) parameter(0)\nr = {COLUMNS} get-tuple-element(x), index=1",
    f"x = ({ROWS}) parameter(0)\nr = {COLUMNS} get-tuple-element(x), index=-1",
    f"x = {ROWS} parameter(0)\nr = {COLUMNS} get-tuple-element(x), index=0",
    f"x = {ROWS} parameter(0)\nr = ({COLUMNS}) copy-start(x)",
], ids=["copy", "transpose", "one dimension", "asynchronous call of one element", "of operands without a tuple", "done of an array", "done of one element",
        "done of nothing", "copied from an array", "copied from one element", "beyond the last", "before the first", "of an array", "copy of one element"])
def test_other_texts_have_no_fault_of_layout(lines: str) -> None:
    assert faults(layouts, module(lines, BODY.format(ROWS, ROWS))) == []


@pytest.mark.parametrize(("header", "lines", "binding"), [
    (", is_scheduled=true", "", True),
    ("", "", False),
    ("", "b = f32[3,2]{1,0} bitcast(x)\n", True),
    ("", "t = f32[2,3]{0,1} parameter(2)\n", True),
    ("", "t = f32[2,3]{1,0:T(8,128)} parameter(2)\n", True),
    ("", "t = f32[2,3]{1,0} parameter(2)\n", False),
], ids=["scheduled", "early", "bitcast", "order of a parameter", "tiles of a parameter", "default order"])
def test_layouts_bind_only_where_they_were_assigned(header: str, lines: str, binding: bool) -> None:
    text = module(f"x = {ROWS} parameter(0)\ny = {ROWS} parameter(1)\n{lines}r = {COLUMNS} add(x, y)", header=header)
    assert [node for node, _ in faults(layouts, text)] == ["r"] * binding


@pytest.mark.parametrize(("lines", "about"), [
    ("x = f32[4]{0} parameter(0)\nr = s32[4]{0:S(5)} bitcast(x)", "bitcast does not move memory"),
    ("x = f32[4]{0:S(5)} parameter(0)\nr = f32[4]{0} bitcast(x)", "bitcast does not move memory"),
    ("x = f32[4]{0:S(1)} parameter(0)\nr = f32[4]{0} bitcast(x)", ""),
    ("x = f32[4]{0:S(5)} parameter(0)\nr = f32[4]{0:S(5)} bitcast(x)", ""),
    ("x = f32[4] parameter(0)\nr = f32[4]{0:S(5)} bitcast(x)", ""),
    ("x = f32[4]{0:S(5)} parameter(0)\nr = f32[4] bitcast(x)", ""),
    ("x = (f32[4]{0}) parameter(0)\nr = f32[4]{0:S(5)} bitcast(x)", ""),
    ("x = f32[4]{0:S(5)} parameter(0)\nr = (f32[4]{0}) bitcast(x)", ""),
    ("r = f32[4]{0:S(5)} bitcast()", ""),
    ("x = f32[4]{0} parameter(0)\nr = bf16[4]{0:S(5)} copy(x)", "keeps the element type"),
    ("x = f32[4]{0} parameter(0)\nr = f32[4]{0:S(5)} copy(x)", ""),
    ("x = f32[4]{0} parameter(0)\nr = bf16[4]{0:S(1)} copy(x)", ""),
    ("x = (f32[4]{0}) parameter(0)\nr = bf16[4]{0:S(5)} copy(x)", ""),
    ("x = f32[4]{0} parameter(0)\nr = (bf16[4]{0:S(5)}) copy(x)", ""),
    ("r = bf16[4]{0:S(5)} copy()", ""),
])
def test_only_copies_move_between_host_and_device_and_they_do_not_convert(lines: str, about: str) -> None:
    found = faults(layouts, module(lines))
    assert [node for node, _ in found] == ["r"] * bool(about)
    assert all(about in message for _, message in found)


@pytest.mark.parametrize(("source", "result", "wrong"), [
    ("f32[4]", "s32[4]", True), ("f32[4]", "f32[2,2]", False), ("f32[]", "s32[]", False), ("f32[4]{0}", "s32[4]{0}", False), ("(f32[4])", "s32[4]", False),
])
def test_before_layouts_a_bitcast_keeps_the_element_type(source: str, result: str, wrong: bool) -> None:
    found = faults(layouts, module(f"x = {source} parameter(0)\nr = {result} bitcast(x)", header=""))
    assert [node for node, _ in found] == ["r"] * wrong


def transfers(sent: str, received: str, header: str = ", is_scheduled=true") -> str:
    """A send and a receive by channel 1, with their pairs of devices; none where the text is empty."""
    pairs_of = {end: f', frontend_attributes={{_xla_send_recv_source_target_pairs="{text}"}}' if text else ""
                for end, text in (("send", sent), ("recv", received))}
    return module(f"""
x = f32[4]{{0}} parameter(0)
t = token[] after-all()
s = (f32[4]{{0}}, u32[], token[]) send(x, t), channel_id=1{pairs_of["send"]}
sd = token[] send-done(s), channel_id=1
r = (f32[4]{{0}}, u32[], token[]) recv(t), channel_id=1{pairs_of["recv"]}
rd = (f32[4]{{0}}, token[]) recv-done(r), channel_id=1""", header=header)


RING = "{{0,1},{1,2}}"


@pytest.mark.parametrize(("sent", "received", "wanted"), [
    (RING, RING, []),
    ("", "", []),
    ("", RING, []),
    (RING, "", []),
    (RING, "{{0,1},{1,3}}", [("r", "must name the same pairs")]),
    ("{{0,1},{0,2}}", "{{0,1},{0,2}}", [("s", "source 0 is listed twice"), ("r", "source 0 is listed twice")]),
    ("{{0,2},{1,2}}", "{{0,2},{1,2}}", [("s", "target 2 is listed twice"), ("r", "target 2 is listed twice")]),
    ("{{0,1},{1,0}}", "{{0,1},{1,0}}", []),
], ids=["ring", "none", "only received", "only sent", "different", "source twice", "target twice", "swap"])
def test_both_ends_of_a_transfer_between_devices_name_the_same_pairs_once(sent: str, received: str, wanted: list[tuple[str, str]]) -> None:
    found = faults(pairs, transfers(sent, received))
    assert [node for node, _ in found] == [node for node, _ in wanted]
    assert all(words in message for (_, message), (_, words) in zip(found, wanted, strict=True))
    assert faults(pairs, transfers(sent, received, header="")) == [], "the order of transfers is not known before scheduling"


def test_a_receive_without_a_send_never_ends() -> None:
    text = "\n".join(line for line in transfers(RING, RING).split("\n") if " send" not in line)
    assert [(node, "waits forever" in message) for node, message in faults(pairs, text)] == [("r", True)]


@pytest.mark.parametrize(("lines", "wanted"), [
    ("x = f32[4]{0} parameter(0)\ns = (f32[4]{0}, f32[4]{0}, u32[]) copy-start(x)", ["s"]),
    ("x = f32[4]{0} parameter(0)\ns = (f32[4]{0}, f32[4]{0}, u32[]) copy-start(x)\nd = f32[4]{0} copy-done(s)", []),
    ("x = f32[4]{0} parameter(0)\ns = (f32[4]{0}, f32[4]{0}, u32[]) copy-start(x)\nd = f32[4]{0} copy-done(s)\nd2 = f32[4]{0} copy-done(s)", ["s"]),
    ("x = f32[4]{0} parameter(0)\ns = (f32[4]{0}, f32[4]{0}, u32[]) copy-start(x)\nd = f32[4]{0} get-tuple-element(s), index=0", ["s"]),
    ("x = f32[4]{0} parameter(0)\ny = (f32[4]{0}, f32[4]{0}, u32[]) custom-call(x), custom_call_target=\"t\"\nd = f32[4]{0} copy-done(y)", ["d"]),
    ("y = (f32[4]{0}, f32[4]{0}, u32[]) parameter(0)\nd = f32[4]{0} copy-done(y)", []),
], ids=["never done", "done", "done twice", "another consumer", "another operand", "a parameter"])
def test_a_start_has_exactly_one_done(lines: str, wanted: list[str]) -> None:
    assert [node for node, _ in faults(pairs, module(lines))] == wanted


def test_transfers_to_the_host_by_one_channel_are_the_same() -> None:
    def text(second: str, frontend: str = "") -> str:
        attributes = ', frontend_attributes={key="a"}'
        return module(f"""
x = f32[4]{{0}} parameter(0)
y = {second} parameter(1)
t = token[] after-all()
s = (f32[4]{{0}}, u32[], token[]) send(x, t), channel_id=1, is_host_transfer=true{attributes}
sd = token[] send-done(s), channel_id=1, is_host_transfer=true
s2 = ({second}, u32[], token[]) send(y, sd), channel_id=1, is_host_transfer=true{frontend or attributes}
sd2 = token[] send-done(s2), channel_id=1, is_host_transfer=true""")
    assert faults(pairs, text("f32[4]{0}")) == []
    [(node, message)] = faults(pairs, text("f32[5]{0}"))
    assert node == "s2" and "must agree" in message
    [(node, message)] = faults(pairs, text("f32[4]{0}", ', frontend_attributes={key="b"}'))
    assert node == "s2" and "frontend_attributes" in message


def test_a_channel_has_one_kind_of_communication() -> None:
    text = transfers(RING, RING).replace("  rd =", "  a = f32[4]{0} all-gather(x), channel_id=1, dimensions={0}, replica_groups={}\n  rd =")
    [(node, message)] = faults(pairs, text)
    assert node == "a" and "used by send and by all-gather" in message
