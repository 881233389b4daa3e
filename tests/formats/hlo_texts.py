"""Small HLO texts of our own: every form of the syntax, by name; and how they are read."""
from __future__ import annotations

from irscope.formats.hlo import read
from irscope.graph import Reading
from irscope.source import SourceText

MODULE = """HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[2,3]{1,0}, s32[])->(f32[2]{0}, f32[2,3]{1,0})}, replica_count=2

%add_f32 (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b), metadata={op_name="jit(f)/reduce_sum"}
}

ENTRY %main (x: f32[2,3], n: s32[]) -> (f32[2], f32[2,3]) {
  %x = f32[2,3]{1,0} parameter(0), sharding={replicated}
  %n = s32[] parameter(1)
  %zero = f32[] constant(0)
  %table = f32[2,3]{1,0} constant({ { 1, 2.5, -3e-05 }, { inf, -inf, nan } })
  %sum = f32[2,3]{1,0} add(%x, %table), metadata={op_name="jit(f)/add" source_file="model.py" source_line=12 source_column=4}
  %reduced = f32[2]{0} reduce(%sum, %zero), dimensions={1}, to_apply=%add_f32, metadata={op_type="reduce" op_name="jit(f)/reduce_sum"}
  %padded = f32[4,3]{1,0} pad(%x, %zero), padding=1_1x0_0, backend_config={"outer":{"inner":["}"]}}
  %cut = f32[2,3]{1,0} slice(%padded), slice={[0:4:2], [0:3]}
  %t = f32[3,2]{1,0} transpose(%cut), dimensions={1,0}
  %back = f32[2,3]{1,0} transpose(%t), dimensions={1,0}, control-predecessors={%reduced, %n}
  ROOT %out = (f32[2]{0}, f32[2,3]{1,0}) tuple(%reduced, %back)
}
"""

FRAMES = '''HloModule jit_g, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

FileNames
1 "/src/train.py"
2 "/src/lib/\\"odd\\" name.py"

FunctionNames
1 "<module>"
2 "step"
3 "loss"

FileLocations
1 {file_name_id=1 function_name_id=1 line=40 end_line=40 column=2 end_column=30}
2 {file_name_id=1 function_name_id=2 line=21 end_line=22 column=8 end_column=9}
3 {file_name_id=2 function_name_id=3 line=7 end_line=7 column=4 end_column=10}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}
3 {file_location_id=3 parent_frame_id=3}


ENTRY %main (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  %e = f32[4]{0} exponential(%p), metadata={op_name="jit(g)/exp" stack_frame_id=3}
  ROOT %n = f32[4]{0} negate(%e), metadata={op_name="jit(g)/neg \\"quoted\\"" stack_frame_id=1}
}
'''

FORMS = {
    "bare": """HloModule bare
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  p = f32[8] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add
}
""",
    "over_lines": """HloModule over_lines   // a comment
ENTRY e {
  p = f32[4,4]{1,0}
      parameter(0)   /* the
      only one */
  ROOT d = f32[4,4] dot(p,
      p), lhs_contracting_dims={1},
      rhs_contracting_dims={0},
      operand_precision={highest, default}
}
""",
    "one_line": "HloModule one ENTRY e { p = f32[2] parameter(0) ROOT n = f32[2] negate(p) }",
    "operand_types": """HloModule old
ENTRY %e (p: f32[2], t: (f32[2], s32[])) -> f32[2] {
  %p = f32[2]{0} parameter(0)
  %t = (f32[2]{0}, s32[]) parameter(1)
  %g = f32[2]{0} get-tuple-element((f32[2]{0}, s32[]) %t), index=0
  ROOT %a = f32[2]{0} add(f32[2]{0} %p, f32[2]{0} %g)
}
""",
    "nested_operands": """HloModule nested
ENTRY e {
  ROOT r = f32[2] add(f32[2] multiply(f32[2] parameter(0), f32[2] parameter(1)), f32[2] broadcast(f32[] constant(3)))
}
""",
    "nested_computations": """HloModule inner
ENTRY e {
  p = f32[8] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply={
    a = f32[] parameter(0)
    b = f32[] parameter(1)
    ROOT c = f32[] add(a, b)
  }
}
""",
    "left_out_types": """HloModule left_out
ENTRY e {
  p = f32[2,3] parameter(0)
  t = tuple(p, p)
  g = get-tuple-element(t), index=1
  n = negate(g)
  ROOT c = compare(n, p), direction=GT
}
""",
    "no_header": """sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY e {
  p = f32[] parameter(0)
  ROOT c = f32[] call(p, p), to_apply=sum
}
""",
    "no_entry_no_root": """HloModule neither
first {
  a = f32[] parameter(0)
}
last {
  b = f32[2] parameter(0)
  c = f32[2] negate(b)
}
""",
    "elements": """HloModule elements
ENTRY e {
  p = (f32[4], (f32[4], s32[])) parameter(0)
  a = f32[4] add(p#0, p#1#0)
  b = f32[4] negate(p#0)
  ROOT t = (f32[4], f32[4], s32[]) tuple(a, b, p#1#1)
}
""",
    "control_flow": """HloModule flow
cond {
  c = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(10)
  ROOT l = pred[] compare(i, n), direction=LT, type=SIGNED
}
body {
  c = (s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[2] get-tuple-element(c), index=1
  ROOT t = (s32[], f32[2]) tuple(j, x)
}
yes {
  a = f32[2] parameter(0)
  ROOT r = f32[2] negate(a)
}
no {
  a = f32[2] parameter(0)
  ROOT r = f32[2] copy(a)
}
ENTRY e {
  z = s32[] constant(0)
  x = f32[2] parameter(0)
  t = (s32[], f32[2]) tuple(z, x)
  w = (s32[], f32[2]) while(t), condition=cond, body=body
  y = f32[2] get-tuple-element(w), index=1
  p = pred[] parameter(1)
  q = f32[2] conditional(p, y, x), true_computation=yes, false_computation=no
  k = s32[] parameter(2)
  ROOT r = f32[2] conditional(k, q, q, x), branch_computations={yes, no, yes}
}
""",
    "windows": """HloModule windows
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ge {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GE
}
ENTRY e {
  x = f32[1,8,8,4] parameter(0)
  k = f32[3,3,2,6] parameter(1)
  conv = f32[1,4,4,6] convolution(x, k), window={size=3x3 stride=2x2 pad=1_1x1_1 rhs_reversal=0x1}, dim_labels=b01f_01io->b01f, feature_group_count=2
  z = f32[] constant(0)
  pool = f32[1,4,4,6] reduce-window(conv, z), window={size=1x3x3x1 pad=0_0x1_1x1_1x0_0 lhs_dilate=1x1x1x1 rhs_dilate=1x1x1x1}, to_apply=add
  ROOT s = f32[1,4,4,6] select-and-scatter(conv, pool, z), window={size=1x1x1x1}, select=ge, scatter=add
}
""",
    "collectives": """HloModule collectives, num_partitions=8
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  p = f32[8,4] parameter(0), sharding={devices=[2,1,4]<=[2,4]T(1,0) last_tile_dim_replicate}
  r = f32[8,4] all-reduce(p), channel_id=1, replica_groups={{0,1,2,3},{4,5,6,7}}, use_global_device_ids=true, to_apply=add
  g = f32[16,4] all-gather(r), channel_id=2, replica_groups=[4,2]<=[2,4]T(1,0), dimensions={0}, use_global_device_ids=true
  m = f32[16,4] all-reduce(g), channel_id=3, replica_groups=mesh["x"=2,"y"=4] {"y"}, use_global_device_ids=true, to_apply=add
  c = f32[16,4] collective-permute(m), channel_id=4, source_target_pairs={{0,1},{1,0}}
  ROOT f = f32[16,4] copy(c), frontend_attributes={note="x",mesh={a = #sdy.mesh<["x"=2]>}}
}
""",
    "asynchronous": """HloModule asynchronous
wrapped {
  q = f32[4] parameter(0)
  ROOT n = f32[4] negate(q)
}, execution_thread="host"
ENTRY e {
  p = f32[4] parameter(0)
  s = ((f32[4]), f32[2], u32[]) slice-start(p), slice={[1:3]}
  u = ((f32[4]), f32[2], u32[]) slice-update(s)
  d = f32[2] slice-done(u)
  start = ((f32[4]), f32[4], u32[]) async-start(p), calls=wrapped, async_execution_thread="host"
  done = f32[4] async-done(start)
  cs = (f32[4], f32[4], u32[]) copy-start(done)
  cd = f32[4] copy-done(cs)
  ROOT t = (f32[2], f32[4]) tuple(d, cd)
}
""",
    "calls": """HloModule calls, input_output_alias={ {}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }
fused {
  a = f32[4]{0} parameter(0)
  ROOT n = f32[4]{0} negate(a)
}
ENTRY e {
  p = f32[4]{0} parameter(0)
  q = f32[4]{0:T(128)S(5)} parameter(1)
  f = f32[4]{0} fusion(p), kind=kLoop, calls=fused, output_to_operand_aliasing={{}: (0, {})}
  c = (f32[4]{0}, s32[]) custom-call(f, q), custom_call_target="my \\"call\\"", operand_layout_constraints={f32[4]{0}, f32[4]{0}}, api_version=API_VERSION_TYPED_FFI, backend_config="a, b = {"
  ROOT g = f32[4]{0} get-tuple-element(c), index=0
}
""",
    "values": """HloModule values
ENTRY e {
  a = c64[2] constant({(1, -2), (0.5, inf)})
  b = (f32[2], s32[]) constant(({1, 2}, 7))
  c = pred[2] constant({true, 0})
  d = f32[2] constant({nan(0x1), -nan})
  e = f32[0,3] constant({})
  f = f32[3,0] constant({{}, {}, {}})
  g = s4[2] constant({-8, 7})
  h = f8e4m3fn[2] constant({448, nan})
  i = f32[16] constant({...})
  j = u64[] constant(18446744073709551615)
  ROOT t = token[] after-all()
}
""",
    "dynamic": """HloModule dynamic
ENTRY e {
  p = f32[<=8,?]{1,0} parameter(0)
  s = s32[] constant(3)
  q = f32[<=8,4] set-dimension-size(f32[8,4] parameter(1), s), dimensions={0}
  ROOT r = s32[] get-dimension-size(q), dimensions={0}
}
""",
}
"""By name, one text for each form."""


def reading(text: str) -> Reading:
    """A text as it is read, with its faults."""
    return read(SourceText("t.hlo", text))
