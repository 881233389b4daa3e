"""More HLO texts with dynamic sizes than XLA's answers are recorded for; their padded forms are in a golden file."""
from __future__ import annotations

from collections.abc import Mapping

SIZED = """ENTRY e {
  x = f32[4,5,6] parameter(0)
  n = s32[] parameter(1)
  m = s32[] parameter(2)
  z = s32[] constant(0)
  f = f32[] constant(0)
  h = f32[4,<=5,6] set-dimension-size(x, n), dimensions={1}
  d = f32[4,<=5,<=6] set-dimension-size(h, m), dimensions={2}
"""
ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"
_BODIES: Mapping[str, str] = {
    "slice of all": "ROOT r = f32[4,<=5,3] slice(h), slice={[0:4],[0:5],[0:3]}",
    "slice of a part": "ROOT r = f32[4,<=3,6] slice(h), slice={[0:4],[1:4],[0:6]}",
    "slice with a stride": "ROOT r = f32[4,<=2,6] slice(h), slice={[0:4],[1:5:2],[0:6]}",
    "slice of one": "ROOT r = f32[4,1,6] slice(h), slice={[0:4],[2:3],[0:6]}",
    "pad beside": "ROOT r = f32[6,<=5,6] pad(h, f), padding=1_1x0_0x0_0",
    "pad to the same size": "ROOT r = f32[4,<=5,6] pad(h, f), padding=0_0x1_-1x0_0",
    "pad by one": "ROOT r = f32[4,<=6,6] pad(h, f), padding=0_0x1_0x0_0",
    "pad by less": "ROOT r = f32[4,<=4,6] pad(h, f), padding=0_0x-1_0x0_0",
    "pad within": "ROOT r = f32[4,<=13,6] pad(h, f), padding=0_0x0_0_2x0_0",
    "concatenate along": "ROOT r = f32[4,<=10,6] concatenate(h, x), dimensions={1}",
    "concatenate across": "ROOT r = f32[8,<=5,6] concatenate(h, h), dimensions={0}",
    "reverse along": "ROOT r = f32[4,<=5,6] reverse(h), dimensions={0,1}",
    "reverse across": "ROOT r = f32[4,<=5,6] reverse(h), dimensions={2}",
    "dynamic slice of all": "ROOT r = f32[1,<=5,6] dynamic-slice(h, z, z, z), dynamic_slice_sizes={1,5,6}",
    "dynamic slice of a part": "ROOT r = f32[1,2,6] dynamic-slice(h, z, z, z), dynamic_slice_sizes={1,2,6}",
    "update of all": "u = f32[1,<=5,6] slice(h), slice={[0:1],[0:5],[0:6]}\n  ROOT r = f32[4,<=5,6] dynamic-update-slice(x, u, z, z, z)",
    "update of a part": "k = f32[2,<=3,<=4] slice(d), slice={[0:2],[0:3],[0:4]}\n  ROOT r = f32[4,5,6] dynamic-update-slice(x, k, z, z, z)",
    "update at a vector": "k = f32[2,<=3,6] slice(h), slice={[0:2],[0:3],[0:6]}\n  v = s32[3] constant({1,0,0})\n"
    "  ROOT r = f32[4,5,6] dynamic-update-slice(x, k, v)",
    "reshape to none": "e = f32[4,<=5,0] slice(h), slice={[0:4],[0:5],[0:0]}\n  ROOT r = f32[<=20,0] reshape(e)",
    "get of a static size": "ROOT r = s32[] get-dimension-size(h), dimensions={0}",
    "get of a size": "ROOT r = s32[] get-dimension-size(h), dimensions={1}",
    "set to the bound": "b = s32[] constant(5)\n  ROOT r = f32[4,5,6] set-dimension-size(h, b), dimensions={1}",
    "set to less": "b = s32[] constant(3)\n  ROOT r = f32[4,<=5,6] set-dimension-size(x, b), dimensions={1}",
    "a broadcast": "ROOT r = f32[2,4,<=5,6] broadcast(h), dimensions={1,2,3}",
    "a transpose": "ROOT r = f32[<=6,4,<=5] transpose(d), dimensions={2,0,1}",
    "sizes that differ": "g = f32[4,<=5,6] set-dimension-size(x, m), dimensions={1}\n  ROOT r = f32[4,<=5,6] add(h, g)",
    "equal sizes": "g = f32[4,<=5,6] negate(h)\n  ROOT r = f32[4,<=5,6] add(h, g)",
    "a size and none": "ROOT r = f32[4,<=5,6] add(h, x)",
    "a sum along": "ROOT r = f32[4,6] reduce(h, f), dimensions={1}, to_apply=add",
    "a sum across": "ROOT r = f32[<=5] reduce(h, f), dimensions={0,2}, to_apply=add",
    "two sums": "ROOT r = (f32[4,<=6], f32[4,<=6]) reduce(d, d, f, f), dimensions={1}, to_apply=two",
    "a window along": "ROOT r = f32[4,<=4,6] reduce-window(h, f), window={size=1x2x1}, to_apply=add",
    "a window with steps": "ROOT r = f32[4,<=2,6] reduce-window(h, f), window={size=1x2x1 stride=1x2x1}, to_apply=add",
    "a dilated window": "ROOT r = f32[4,<=3,6] reduce-window(h, f), window={size=1x2x1 rhs_dilate=1x2x1}, to_apply=add",
    "a running sum": "ROOT r = f32[4,<=5,6] reduce-window(h, f), window={size=1x5x1 pad=0_0x4_0x0_0}, to_apply=add",
    "a window across": "ROOT r = f32[3,<=5,6] reduce-window(h, f), window={size=2x1x1}, to_apply=add",
    "a window with holes": "ROOT r = f32[4,<=8,6] reduce-window(h, f), window={size=1x2x1 lhs_dilate=1x2x1}, to_apply=add",
    "a product along": "ROOT r = f32[4,6,4,6] dot(h, h), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
    "a product across": "ROOT r = f32[4,<=5,4,<=5] dot(h, h), lhs_contracting_dims={2}, rhs_contracting_dims={2}",
    "a product of batches": "ROOT r = f32[<=5,4,4] dot(h, h), lhs_batch_dims={1}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={2}",
    "a sort along": "ROOT r = f32[4,<=5,6] sort(h), dimensions={1}, to_apply=less",
    "a sort across": "ROOT r = f32[4,<=5,6] sort(h), dimensions={2}, to_apply=less",
    "wider elements": "ROOT r = u8[4,<=5,6,4] bitcast-convert(h)",
    "joined elements": "w = u8[4,<=4] custom-call(), custom_call_target=\"w\"\n  ROOT r = u32[4] bitcast-convert(w)",
    "a gather of rows": "i = s32[2] constant({1,3})\n  ROOT r = f32[2,<=5,6] gather(h, i), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, "
    "index_vector_dim=1, slice_sizes={1,5,6}",
    "a gather of a part": "i = s32[2] constant({1,3})\n  ROOT r = f32[2,2,6] gather(h, i), offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0}, "
    "index_vector_dim=1, slice_sizes={1,2,6}",
    "a barrier": "t = (f32[4,<=5,6], f32[4,5,6]) tuple(h, x)\n  b = (f32[4,<=5,6], f32[4,5,6]) opt-barrier(t)\n"
    "  ROOT r = f32[4,<=5,6] get-tuple-element(b), index=0",
    "a transform of batches": "c = c64[4,<=5,4] fft(h), fft_type=RFFT, fft_length={6}\n  ROOT r = c64[4,<=5,4] negate(c)",
    "a transform along": "c = c64[4,5,<=4] custom-call(), custom_call_target=\"c\"\n  ROOT r = c64[4,5,<=4] fft(c), fft_type=FFT, fft_length={4}",
    "a constant of bounded type": "c = f32[<=3] constant({1,2,3})\n  ROOT r = f32[<=3] negate(c)",
    "a branch": "p = pred[] constant(true)\n  ROOT r = f32[4,<=5,6] conditional(p, h, h), true_computation=one, false_computation=two_",
    "a loop": "t = (s32[], f32[4,<=5,6]) tuple(z, h)\n  w = (s32[], f32[4,<=5,6]) while(t), condition=c, body=b\n"
    "  ROOT r = f32[4,<=5,6] get-tuple-element(w), index=1",
    "a call of a tuple": "t = (f32[4,<=5,6], s32[]) tuple(h, n)\n  ROOT r = f32[4] custom-call(t), custom_call_target=\"f\"",
    "a bound of one": "k = f32[1] parameter(3)\n  e = f32[<=1] set-dimension-size(k, n), dimensions={0}\n  ROOT r = f32[1] reshape(e)",
    "a loop with a token": "k = token[] after-all()\n  t = (s32[], token[], f32[4,<=5,6]) tuple(z, k, h)\n"
    "  w = (s32[], token[], f32[4,<=5,6]) while(t), condition=ct, body=bt\n  ROOT r = f32[4,<=5,6] get-tuple-element(w), index=2",
    "a loop that cuts": "t = (s32[], f32[4,<=5,6]) tuple(z, x)\n  w = (s32[], f32[4,<=5,6]) while(t), condition=c, body=cut\n"
    "  ROOT r = f32[4,<=5,6] get-tuple-element(w), index=1",
}
BODIES = ADD + """two {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  p = f32[] parameter(2)
  q = f32[] parameter(3)
  s = f32[] add(a, p)
  u = f32[] multiply(b, q)
  ROOT t = (f32[], f32[]) tuple(s, u)
}
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = pred[] compare(a, b), direction=LT
}
one {
  a = f32[4,<=5,6] parameter(0)
  ROOT n = f32[4,<=5,6] negate(a)
}
two_ {
  a = f32[4,<=5,6] parameter(0)
  k = s32[] constant(2)
  ROOT n = f32[4,<=5,6] set-dimension-size(a, k), dimensions={1}
}
c {
  s = (s32[], f32[4,<=5,6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = s32[] constant(3)
  ROOT l = pred[] compare(i, k), direction=LT
}
b {
  s = (s32[], f32[4,<=5,6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4,<=5,6] get-tuple-element(s), index=1
  k = s32[] constant(1)
  j = s32[] add(i, k)
  y = f32[4,<=5,6] negate(x)
  ROOT t = (s32[], f32[4,<=5,6]) tuple(j, y)
}
ct {
  s = (s32[], token[], f32[4,<=5,6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = s32[] constant(3)
  ROOT l = pred[] compare(i, k), direction=LT
}
bt {
  s = (s32[], token[], f32[4,<=5,6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  u = token[] get-tuple-element(s), index=1
  x = f32[4,<=5,6] get-tuple-element(s), index=2
  k = s32[] constant(1)
  j = s32[] add(i, k)
  y = f32[4,<=5,6] negate(x)
  ROOT t = (s32[], token[], f32[4,<=5,6]) tuple(j, u, y)
}
cut {
  s = (s32[], f32[4,<=5,6]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4,<=5,6] get-tuple-element(s), index=1
  k = s32[] constant(1)
  j = s32[] add(i, k)
  y = f32[4,<=5,6] set-dimension-size(x, j), dimensions={1}
  ROOT t = (s32[], f32[4,<=5,6]) tuple(j, y)
}
"""
PROGRAMS = {name: f"{BODIES}{SIZED}  {body}\n}}\n" for name, body in _BODIES.items()}
