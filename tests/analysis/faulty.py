"""HLO texts that break a rule of the module, and their nearest correct forms, for the golden file of all messages."""
from __future__ import annotations

ADD = "add { a = f32[] parameter(0)\nb = f32[] parameter(1)\nROOT s = f32[] add(a, b) }\n"
PIN = 'custom_call_target="Pin", output_to_operand_aliasing={{}: (0, {})}'
WRITE = 'custom_call_target="write"'
ALIAS = "output_to_operand_aliasing="
SHARDED = "HloModule m, num_partitions=4\nENTRY e { x = f32[4,2] parameter(0), sharding={SHARDING}\nROOT n = f32[4,2] negate(x) }"
PAIRS_OF = '{_xla_send_recv_source_target_pairs="{PAIRS}"}'


def _module(*lines: str, header: str = "", before: str = "") -> str:
    body = "\n  ".join((*lines[:-1], f"ROOT {lines[-1]}"))
    return f"HloModule m{header}\n{before}ENTRY e {{\n  {body}\n}}\n"


def _reduced(groups: str, op: str = "all-reduce", header: str = "", more: str = "") -> str:
    return _module("x = f32[8] parameter(0)", f"r = f32[8] {op}(x), replica_groups={groups}{more}, to_apply=add", header=header, before=ADD)


def _permuted(pairs: str, header: str = "", more: str = "") -> str:
    return _module("x = f32[8] parameter(0)", f"r = f32[8] collective-permute(x), source_target_pairs={pairs}{more}", header=header)


def _pinned(*lines: str) -> str:
    return _module("x = f32[2] parameter(0)", f"p = b(f32[2]) custom-call(x), {PIN}", *lines)


UNPIN = 'custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})}'
KEPT = _module("x = f32[2] parameter(0)", "y = s32[] parameter(1)", "t = (f32[2], s32[]) tuple(x, y)")

COLLECTIVES = {
    "an empty group": _reduced("{{0},{}}"),
    "groups of two sizes": _reduced("{{0,1},{2}}"),
    "groups of two sizes that gather": _module(
        "x = f32[8] parameter(0)", "r = f32[16] all-gather(x), replica_groups={{0,1},{2}}, dimensions={0}"),
    "more replicas": _reduced("{{0,1},{2,3}}", header=", replica_count=2"),
    "as many replicas": _reduced("{{0,1},{2,3}}", header=", replica_count=4"),
    "replicas by a channel": _reduced("{{0,1}}", header=", replica_count=4, num_partitions=2", more=", channel_id=1"),
    "devices by a channel": _reduced("{{0,1}}", header=", replica_count=4, num_partitions=2", more=", channel_id=1, use_global_device_ids=true"),
    "all devices": _reduced("{{0,1,2,3},{4,5,6,7}}", header=", replica_count=4, num_partitions=2", more=", channel_id=1, use_global_device_ids=true"),
    "partitions by a channel": _module("x = f32[8] parameter(0)", "r = f32[8] all-to-all(x), replica_groups={{0,1}}, channel_id=1, dimensions={0}",
                                       header=", replica_count=2, num_partitions=4"),
    "no groups with global ids": _reduced("{}", more=", channel_id=1, use_global_device_ids=true"),
    "no groups": _reduced("{}"),
    "a channel of zero": _reduced("{{0}}", more=", channel_id=0"),
    "a negative channel": _reduced("{{0}}", more=", channel_id=-1"),
    "constrained layouts": _module(
        "x = f32[8] parameter(0)", "a = f32[8] all-reduce(x), replica_groups={{0}}, constrain_layout=true, to_apply=add",
        "b = f32[8] all-reduce(a), replica_groups={{0}}, to_apply=add", before=ADD),
    "permutes to a negative device": _permuted("{{0,-1}}"),
    "permutes twice to a device": _permuted("{{0,1},{2,1}}"),
    "permutes beyond the replicas": _permuted("{{0,1},{1,2}}", header=", replica_count=2"),
    "permutes to the last replica": _permuted("{{0,1},{1,0}}", header=", replica_count=2"),
    "permutes without a count": _permuted("{{0,1},{1,7}}"),
    "permutes slices": _module(
        "x = f32[8] parameter(0)", "y = f32[8] parameter(1)", "i = s32[] constant(0)", "o = (s32[]) tuple(i)", "oo = ((s32[]), (s32[])) tuple(o, o)",
        "r = f32[8] collective-permute(x, y, oo, oo), source_target_pairs={{0,1},{0,2},{0,3}}, slice_sizes={{4},{4}}"),
    "permutes slices of tuples": _module(
        "x = f32[8] parameter(0)", "y = (f32[8], f32[8]) tuple(x, x)", "i = s32[] constant(0)", "o = (s32[]) tuple(i)",
        "oo = ((s32[]), (s32[])) tuple(o, o)", "ooo = (((s32[]), (s32[])), ((s32[]), (s32[]))) tuple(oo, oo)",
        "r = (f32[8], f32[8]) collective-permute(y, y, ooo, ooo), source_target_pairs={{0,1},{0,2},{0,3}}, slice_sizes={{4},{4}}"),
}
BUFFERS = {
    "two aliases of a pin": _module("x = f32[2] parameter(0)", 'p = b(f32[2]) custom-call(x), custom_call_target="Pin"', f"v = f32[2] custom-call(p), {UNPIN}"),
    "a buffer is lost": _pinned(f"w = f32[2] custom-call(p), {WRITE}", "v = f32[2] negate(w)"),
    "a buffer is created": _module("x = f32[2] parameter(0)", f"w = b(f32[2]) custom-call(x), {WRITE}", f"v = f32[2] custom-call(w), {UNPIN}"),
    "a maker creates a buffer": _module('w = b(f32[2]) custom-call(), custom_call_target="CreateBuffer"', f"v = f32[2] custom-call(w), {UNPIN}"),
    "an allocation creates a buffer": _module('w = b(f32[2]) custom-call(), custom_call_target="AllocateBuffer"', f"v = f32[2] custom-call(w), {UNPIN}"),
    "a buffer is in two results": _pinned(
        f"w = (b(f32[2]), b(f32[2])) custom-call(p), {WRITE}, {ALIAS}{{{{0}}: (0, {{}}), {{1}}: (0, {{}})}}",
        "a = b(f32[2]) get-tuple-element(w), index=0", f"v = f32[2] custom-call(a), {UNPIN}"),
    "a buffer passes through a tuple": _pinned(
        "t = (b(f32[2]), f32[2]) tuple(p, x)", "o = (b(f32[2]), f32[2]) opt-barrier(t)", "a = b(f32[2]) get-tuple-element(o), index=0",
        f"v = f32[2] custom-call(a), {UNPIN}"),
    "a buffer is written beside a tuple": _pinned(
        "t = (f32[2], b(f32[2])) tuple(x, p)", "o = (f32[2], b(f32[2])) opt-barrier(t)", "a = b(f32[2]) get-tuple-element(o), index=1",
        f"u = f32[2] custom-call(p), {UNPIN}", f"v = f32[2] custom-call(a), {UNPIN}"),
    "a buffer is returned": _pinned("t = (b(f32[2]), f32[2]) tuple(p, x)"),
    "a written buffer is given back": "f { p = b(f32[2]) parameter(0)\n"
    f"w = b(f32[2]) custom-call(p), {WRITE}, {ALIAS}{{{{}}: (0, {{}})}}\nROOT t = (b(f32[2]), b(f32[2])) tuple(p, w) }}\n"
    f"ENTRY e {{ x = f32[2] parameter(0)\np = b(f32[2]) custom-call(x), {PIN}\nc = (b(f32[2]), b(f32[2])) call(p), to_apply=f\n"
    f"a = b(f32[2]) get-tuple-element(c), index=0\nROOT v = f32[2] custom-call(a), {UNPIN} }}\n",
}
ALIASES = {
    "a part of the result that is missing": _module("x = f32[2] parameter(0)", f"r = (f32[2]) custom-call(x), {WRITE}, {ALIAS}{{{{1}}: (0, {{}})}}"),
    "the last part of the result": _module("x = f32[2] parameter(0)", f"r = (s32[], f32[2]) custom-call(x), {WRITE}, {ALIAS}{{{{1}}: (0, {{}})}}"),
    "a part of an operand that is missing": _module("x = (f32[2]) parameter(0)", f"r = f32[2] custom-call(x), {WRITE}, {ALIAS}{{{{}}: (0, {{1}})}}"),
    "a part of an array": _module("x = f32[2] parameter(0)", f"r = f32[2] custom-call(x), {WRITE}, {ALIAS}{{{{}}: (0, {{0}})}}"),
    "an output twice": _module("x = f32[2] parameter(0)", "y = f32[2] parameter(1)", f"r = f32[2] custom-call(x, y), {WRITE}, {ALIAS}{{{{}}: (0, {{}}), {{}}: (1, {{}})}}"),
    "a negative operand": _module("x = f32[2] parameter(0)", f"r = f32[2] custom-call(x), {WRITE}, {ALIAS}{{{{}}: (-1, {{}})}}"),
    "the operand behind the last": _module("x = f32[2] parameter(0)", f"r = f32[2] custom-call(x), {WRITE}, {ALIAS}{{{{}}: (1, {{}})}}"),
    "fewer parameters than the layout": KEPT.replace("HloModule m", "HloModule m, entry_computation_layout={(f32[2])->(f32[2], s32[])}"),
    "another result than the layout": KEPT.replace("HloModule m", "HloModule m, entry_computation_layout={(f32[2], s32[])->(f32[2], s64[])}"),
    "the layout of the entry": KEPT.replace("HloModule m", "HloModule m, entry_computation_layout={(f32[2], s32[])->(f32[2], s32[])}"),
    "no such result": KEPT.replace("HloModule m", "HloModule m, input_output_alias={ {2}: (0, {}, may-alias) }"),
    "must share memory of other types": KEPT.replace("HloModule m", "HloModule m, input_output_alias={ {1}: (0, {}, must-alias) }"),
    "may share memory of other types": KEPT.replace("HloModule m", "HloModule m, input_output_alias={ {1}: (0, {}, may-alias) }"),
    "must share memory": KEPT.replace("HloModule m", "HloModule m, input_output_alias={ {0}: (0, {}, must-alias), {1}: (1, {}, must-alias) }"),
    "a parameter shared twice": KEPT.replace("HloModule m", "HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (0, {}, may-alias) }"),
    "an output shared twice": KEPT.replace("HloModule m", "HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {0}: (1, {}, may-alias) }"),
    "the parameter behind the last": KEPT.replace("HloModule m", "HloModule m, input_output_alias={ {0}: (2, {}, may-alias) }"),
    "a donor that is missing": KEPT.replace("HloModule m", "HloModule m, buffer_donor={ (2, {}) }"),
    "a donor's part that is missing": KEPT.replace("HloModule m", "HloModule m, buffer_donor={ (1, {0}) }"),
    "a donor": KEPT.replace("HloModule m", "HloModule m, buffer_donor={ (1, {}) }"),
    "a donor that is shared": KEPT.replace("HloModule m", "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }, buffer_donor={ (0, {}), (1, {}) }"),
}
STARTED = ("w { a = f32[2] parameter(0)\nb = f32[2] parameter(1)\nROOT n = f32[2] add(a, b) }\n"
           "ENTRY e { x = f32[2] parameter(0)\ny = f32[2] parameter(1)\nSTART, calls=w\nROOT d = f32[2] async-done(s) }")
STARTS = {
    "an asynchronous start with its output": STARTED.replace("START", "s = ((f32[2], f32[2]), f32[2], u32[]) async-start(x, y), " + ALIAS + "{{1}: (0, {})}"),
    "an asynchronous start without output index": STARTED.replace("START", "s = ((f32[2], f32[2]), f32[2], u32[]) async-start(x, y), " + ALIAS + "{{}: (0, {})}"),
    "an operand that is bound later": STARTED.replace(
        "START", "s0 = ((f32[2]), (), u32[]) async-start(x), calls=w\ns = ((f32[2], f32[2]), f32[2], u32[]) async-update(s0, y)").replace(", calls=w\nROOT", "\nROOT"),
    "an implicit start": "ENTRY e { x = f32[2] parameter(0)\ns = ((f32[2]), f32[2], s32[]) custom-call-start(x), " + WRITE + ", " + ALIAS
    + "{{}: (0, {})}\nROOT d = f32[2] custom-call-done(s) }",
    "an implicit start with a missing part": "ENTRY e { x = f32[2] parameter(0)\ns = ((f32[2]), f32[2], s32[]) custom-call-start(x), " + WRITE + ", " + ALIAS
    + "{{0}: (0, {})}\nROOT d = f32[2] custom-call-done(s) }",
    "a start on another thread": 'w { a = f32[2] parameter(0)\nROOT n = f32[2] negate(a) }, execution_thread="side"\n'
    'ENTRY e { x = f32[2] parameter(0)\ns = ((f32[2]), f32[2], u32[]) async-start(x), async_execution_thread="side", calls=w\nROOT d = f32[2] async-done(s) }',
    "a start on a wrong thread": 'w { a = f32[2] parameter(0)\nROOT n = f32[2] negate(a) }, execution_thread="side"\n'
    'ENTRY e { x = f32[2] parameter(0)\ns = ((f32[2]), f32[2], u32[]) async-start(x), async_execution_thread="other", calls=w\nROOT d = f32[2] async-done(s) }',
}
SHARDINGS = {
    **{f"sharded {text}": SHARDED.replace("SHARDING", text) for text in (
        "devices=[2,2]0,1,2,3", "devices=[2,1,2]0,1,2,3 last_tile_dim_replicate", "devices=[2,1,2]0,1,2,3 last_tile_dims={manual}", "devices=[2,2]<=[4]",
        "devices=[4,2]<=[8]", "devices=[2,2]<=[2,2]T(1,0)", "devices=[2,2]0,1,1,2", "devices=[2,2]0,1,2,-1", "devices=[2,2]0,1,2,4", "devices=[4]0,1,2,3",
        "maximal device=3", "maximal device=4", "maximal device=-1", "replicated", "devices=[2,1,1,2]0,1,2,3 last_tile_dims={manual, replicated}")},
    "more devices without partitions": SHARDED.replace("SHARDING", "devices=[4,2]<=[8]").replace(", num_partitions=4", ""),
    "any device without partitions": SHARDED.replace("SHARDING", "maximal device=9").replace(", num_partitions=4", ""),
    "parts of a tuple": "HloModule m, num_partitions=4\nENTRY e { x = f32[4,2] parameter(0)\n"
    "ROOT t = (f32[4,2], f32[4]) tuple(x, x), sharding={{devices=[2,2]0,1,2,3}, {devices=[2,2]0,1,2,3}} }",
    "too few parts of a tuple": "HloModule m, num_partitions=4\nENTRY e { x = f32[4,2] parameter(0)\n"
    "ROOT t = (f32[4,2], f32[4,2], f32[4,2]) tuple(x, x, x), sharding={{devices=[2,2]0,1,2,3}, {replicated}} }",
    "one part of a tuple": "HloModule m, num_partitions=4\nENTRY e { x = f32[4,2] parameter(0)\nROOT t = (f32[4,2], f32[4,2]) tuple(x, x), sharding={{replicated}} }",
    "branches": "f { x = f32[4] parameter(0)\nROOT n = f32[4] negate(x), sharding={devices=[2]0,1} }\n"
    "g { x = f32[4] parameter(0)\nROOT n = f32[4] abs(x), sharding={devices=[2]1,0} }\n"
    "ENTRY e { p = pred[] parameter(0)\nx = f32[4] parameter(1)\nROOT c = f32[4] conditional(p, x, x), true_computation=f, false_computation=g }",
    "equal branches": "f { x = f32[4] parameter(0)\nROOT n = f32[4] negate(x), sharding={devices=[2]0,1} }\n"
    'g { x = f32[4] parameter(0)\nROOT n = f32[4] abs(x), sharding={devices=[2]0,1 metadata={op_name="b"}} }\n'
    "ENTRY e { p = pred[] parameter(0)\nx = f32[4] parameter(1)\n"
    'ROOT c = f32[4] conditional(p, x, x), true_computation=f, false_computation=g, sharding={devices=[2]0,1 metadata={op_name="a"}} }',
    "parts of a tuple with metadata": "f { x = f32[4] parameter(0)\n"
    'ROOT n = (f32[4], f32[4]) tuple(x, x), sharding={{devices=[2]0,1 metadata={{op_name="a}"}, {op_name="b"}}}, {replicated}} }\n'
    "g { x = f32[4] parameter(0)\nROOT n = (f32[4], f32[4]) tuple(x, x), sharding={{devices=[2]0,1}, {replicated}} }\n"
    "ENTRY e { p = pred[] parameter(0)\nx = f32[4] parameter(1)\n"
    "ROOT c = (f32[4], f32[4]) conditional(p, x, x), true_computation=f, false_computation=g }",
    "the result of a loop's body": "c { x = s32[] parameter(0)\nROOT y = pred[] constant(false) }\n"
    "b { x = s32[] parameter(0), sharding={replicated}\nROOT y = s32[] negate(x), sharding={maximal device=0} }\n"
    "ENTRY e { x = s32[] parameter(0)\nROOT w = s32[] while(x), condition=c, body=b }",
}
F = "f { x = f32[] parameter(0)\nROOT n = f32[] negate(x) }\n"
CALLS = {
    **{f"composite {attributes}": F + "ENTRY e { x = f32[] parameter(0)\nROOT c = f32[] call(x), to_apply=f, is_composite=true, frontend_attributes={" + attributes + "} }"
       for attributes in ('composite.name="a.b"', 'composite.name=""', 'composite.name="a", composite.attributes=""', 'composite.name="a", composite.attributes={}',
                          'composite.name="a", composite.version="1"', 'composite.name="a", composite.version="-1"', 'composite.name="a", composite.version="x"')},
    "a seed of another type": 'ENTRY e { ROOT s = u32[] custom-call(), custom_call_target="GetRngSeed" }',
    "a seed": 'ENTRY e { ROOT s = u64[] custom-call(), custom_call_target="GetRngSeed" }',
    **{f"n{suffix} scheduled as {name}": f'ENTRY e {{ x = f32[] parameter(0)\nROOT n{suffix} = f32[] negate(x), metadata={{scheduling_name="{name}"}} }}'
       for name, suffix in (("n", ""), ("m", ""), ("", ""), ("m", ".remat"), ("m", ".clone"))},
    **{f"origin {origin} of {type}": f"ENTRY e {{ ROOT x = {type} parameter(0), origin={{{origin}}} }}" for origin, type in (
        ('{"a"}', "f32[]"), ('({"a"}, {"b"})', "(f32[], f32[])"), ('({"a"})', "(f32[], f32[])"), ('(({"a"}), {"b"})', "((f32[]), f32[])"),
        ('(({"a"}, {"c"}), {"b"})', "((f32[]), f32[])"), ('({"a"}, ({"b"}))', "(f32[], f32[])"))},
}
LAYOUTS = {
    "a shared part of another layout": _module(
        "x = f32[2,3]{0,1} parameter(0)", f"r = f32[2,3]{{1,0}} custom-call(x), {WRITE}, {ALIAS}{{{{}}: (0, {{}})}}", header=", is_scheduled=true"),
}
_RECV = "r = (f32[2], u32[], token[]) recv(t), channel_id=1"
_SEND = "s = (f32[2], u32[], token[]) send(x, t), channel_id=1"
_ENDS = ("rd = (f32[2], token[]) recv-done(r), channel_id=1", "sd = token[] send-done(s), channel_id=1", "v = f32[2] get-tuple-element(rd), index=0")


def _sent(send: str, receive: str, header: str = ", is_scheduled=true") -> str:
    return _module("x = f32[2] parameter(0)", "t = token[] after-all()", _SEND + send, _RECV + receive, *_ENDS, header=header)


def _pairs(text: str) -> str:
    return ', frontend_attributes={_xla_send_recv_source_target_pairs="' + text + '"}'


TRANSFERS = {
    "pairs agree": _sent(_pairs("{{0,1}}"), _pairs("{{0,1}}")),
    "pairs differ": _sent(_pairs("{{0,1}}"), _pairs("{{1,0}}")),
    "pairs differ before scheduling": _sent(_pairs("{{0,1}}"), _pairs("{{1,0}}"), ""),
    "a source twice": _sent(_pairs("{{0,1},{0,2}}"), _pairs("{{0,1},{0,2}}")),
    "a target twice": _sent(_pairs("{{0,1},{2,1}}"), ""),
    "pairs of three": _sent(_pairs("{{0,1,2},{0,3,4}}"), ""),
    "two hosts agree": _module("x = f32[2] parameter(0)", "t = token[] after-all()", "a = (f32[2], u32[], token[]) send(x, t), channel_id=1, is_host_transfer=true",
                               "ad = token[] send-done(a), channel_id=1, is_host_transfer=true",
                               "b = (f32[2], u32[], token[]) send(x, ad), channel_id=1, is_host_transfer=true",
                               "bd = token[] send-done(b), channel_id=1, is_host_transfer=true"),
    "two hosts of two types": _module("x = f32[2] parameter(0)", "y = s32[2] parameter(1)", "t = token[] after-all()",
                                      "a = (f32[2], u32[], token[]) send(x, t), channel_id=1, is_host_transfer=true",
                                      "ad = token[] send-done(a), channel_id=1, is_host_transfer=true",
                                      "b = (s32[2], u32[], token[]) send(y, ad), channel_id=1, is_host_transfer=true",
                                      "bd = token[] send-done(b), channel_id=1, is_host_transfer=true"),
    "two hosts of other attributes": _module("x = f32[2] parameter(0)", "t = token[] after-all()",
                                             'a = (f32[2], u32[], token[]) send(x, t), channel_id=1, is_host_transfer=true, frontend_attributes={n="1"}',
                                             "ad = token[] send-done(a), channel_id=1, is_host_transfer=true",
                                             'b = (f32[2], u32[], token[]) send(x, ad), channel_id=1, is_host_transfer=true, frontend_attributes={n="2"}',
                                             "bd = token[] send-done(b), channel_id=1, is_host_transfer=true"),
    "two dones": _module("x = f32[2] parameter(0)", "s = (f32[2], f32[2], u32[]) copy-start(x)", "d = f32[2] copy-done(s)", "c = f32[2] copy-done(s)",
                         "r = f32[2] add(c, d)"),
    "another consumer": _module("x = f32[2] parameter(0)", "s = (f32[2], f32[2], u32[]) copy-start(x)", "r = f32[2] get-tuple-element(s), index=0"),
    "a group of transfers": "w { x = f32[2] parameter(0)\nt = token[] after-all()\n" + _SEND + "\n" + _RECV
    + "\nROOT q = ((f32[2], u32[], token[]), (f32[2], u32[], token[])) tuple(s, r) }\nENTRY e { x = f32[2] parameter(0)\n"
    "a = ((f32[2]), ((f32[2], u32[], token[]), (f32[2], u32[], token[])), u32[]) async-start(x), calls=w\n"
    "ROOT d = ((f32[2], u32[], token[]), (f32[2], u32[], token[])) async-done(a) }",
}
TEXTS = {name: text for group in (COLLECTIVES, BUFFERS, ALIASES, STARTS, SHARDINGS, CALLS, LAYOUTS, TRANSFERS) for name, text in group.items()}

RELAY = {
    **{f"a {word} with {number} arguments": f"def @main(%x: Tensor[(2), float32]) {{ {word}({', '.join(['%x'] * number)}) }}"
       for word in ("ref", "ref_read", "ref_write") for number in range(4)},
    "recursion through two": """def @main(%x: float32) { @f(%x) }
def @f(%x: float32) { @g(%x) }
def @g(%x: float32) { %0 = @leaf(%x); @h(%0) }
def @h(%x: float32) { @f(%x) }
def @leaf(%x: float32) { negative(%x) }
""",
    "recursion behind a choice": """def @main(%x: float32, %c: bool) -> float32 { if (%c) { @main(%x, %c) } else { %x } }
""",
    "a field of an empty tuple": """def @main(%x: ()) { %x.0 }
""",
    "a field of one": """def @main(%x: (float32,)) { %x.1 }
""",
    "the last field": """def @main(%x: (float32, int32)) { %x.1 }
""",
    "a field of a function": """def @main(%x: float32) { let %f = fn (%a: float32) { %a }; %f.0 }
""",
    "a tuple is called": """def @main(%x: (float32, float32), %y: float32) { %x(%y) }
""",
    "a condition of a tuple": """def @main(%c: (bool, bool), %x: float32) { if (%c) { %x } else { %x } }
""",
    "a condition of a function": """def @main(%x: float32) { let %f = fn (%a: float32) { %a }; if (%f) { %x } else { %x } }
""",
    "branches of a tensor and a function": """def @main(%c: bool, %x: float32) { if (%c) { fn (%a: float32) { %a } } else { %x } }
""",
    "branches of a tuple and a tensor": """def @main(%c: bool, %x: float32) { if (%c) { (%x, %x) } else { %x } }
""",
    "branches of two functions": """def @main(%c: bool, %x: float32) { if (%c) { fn (%a: float32) { %a } } else { fn (%a: int32) { %a } } }
""",
    "a function that takes none": """def @main(%x: float32) { @f(%x) }
def @f() { 1f }
""",
    "a name of another value": """def @main(%x: float32) { %y = negative(%x); add(y, %x) }
""",
    "an operator as a value": """def @main(%x: float32) { let %f = negative; %f(%x) }
""",
    "a function of an unknown operator": """def @main(%x: float32) { %0 = frobnicate(%x); @f(%0) }
def @f(%a: int32) { %a }
""",
    "operands behind an unknown one": """def @main(%x: float32) { %0 = frobnicate(%x); nn.relu(%0, %x) }
""",
    "another result behind an unknown one": """def @main(%x: float32) -> Tensor[(4), float32] { %0 = frobnicate(%x); nn.relu(%0) }
""",
    "nested patterns": """type List { Cons(float32, List), Nil, }
def @main(%l: List) { match (%l) { Cons(_, Cons(%a)) => 1f, Cons(Other(%b), _) => 2f, Cons(_, Cons(%c, Nil)) => 3f, _ => 4f, } }
""",
    "patterns without parts": """type List { Cons(float32, List), Nil, }
def @main(%l: List) { match (%l) { Nil => 1f, %other => 2f, } }
""",
    "constructors": """type Pair { Two(float32, float32), One(float32), }
def @main(%x: float32) { let %a = Two(%x, %x); let %b = One(%x, %x); let %c = Two(%x); %x }
""",
    "a pattern for a tuple": """type Pair { Two(float32, float32), }
def @main(%x: (float32, float32)) { match (%x) { Two(%a, %b) => %a, (%a, %b) => %b, } }
""",
}
