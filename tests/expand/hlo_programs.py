"""HLO texts whose expansion is compared with a golden file: bitcasts, asynchronous pairs, tuples, and what expansion refuses."""
from __future__ import annotations

F = "f {\n  p = f32[4] parameter(0)\n  ROOT n = f32[4] negate(p)\n}\n"
ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"


def entry(*lines: str, before: str = "") -> str:
    """An entry of some instructions, of which the last is the result."""
    return "HloModule m\n" + before + "ENTRY e {\n" + "".join(f"  {line}\n" for line in lines[:-1]) + f"  ROOT {lines[-1]}\n}}\n"


def bitcast(source: str, result: str) -> str:
    return entry(f"x = {source} parameter(0)", f"r = {result} bitcast(x)")


PROGRAMS = {
    **{f"{source} to {result}": bitcast(source, result) for source, result in (
        ("f32[2,3]{0,1}", "f32[3,2]{1,0}"), ("f32[2,3]{1,0}", "f32[3,2]{0,1}"), ("f32[2,3,4]{0,2,1}", "f32[3,4,2]{2,1,0}"), ("f32[2,3]{1,0}", "f32[6]{0}"),
        ("f32[6]{0}", "f32[2,3]{0,1}"), ("f32[2,3]", "f32[3,2]"), ("f32[2,3]{1,0}", "f32[2,3]{1,0}"), ("f32[1]{0}", "f32[]"), ("f32[]", "f32[1,1]{1,0}"),
        ("f32[2,3]{1,0}", "s32[2,3]{1,0}"), ("f32[2,3]{0,1}", "s32[3,2]{1,0}"), ("f32[2,3]{1,0}", "u8[2,12]{1,0}"), ("u8[2,12]{1,0}", "f32[2,3]{1,0}"),
        ("u8[4]{0}", "f32[]"), ("u8[2,4]{1,0}", "f32[2]{0}"), ("f64[2]{0}", "f32[4]{0}"), ("f32[]", "u8[4]{0}"), ("u8[2,3,4]{2,1,0}", "s32[6]{0}"))},
    "layout without all dimensions": bitcast("f32[2,3]{1,1}", "f32[6]{0}"),
    "a constant tuple": entry("c = (f32[2], (s32[], pred[])) constant(({1, 2}, (3, true)))", "i = (s32[], pred[]) get-tuple-element(c), index=1",
                              "j = s32[] get-tuple-element(i), index=0", "k = f32[2] get-tuple-element(c), index=0", "r = (s32[], f32[2]) tuple(j, k)"),
    "a constant tuple that is returned": entry("r = (f32[2], (s32[], pred[])) constant(({1, 2}, (3, true)))"),
    "a tuple of a parameter": entry("x = ((f32[4], s32[]), f32[2]) parameter(0)", "i = (f32[4], s32[]) get-tuple-element(x), index=0",
                                    "r = f32[4] get-tuple-element(i), index=0"),
    "a tuple that passes a barrier": entry("x = f32[4] parameter(0)", "t = (f32[4], f32[4]) tuple(x, x)", "b = (f32[4], f32[4]) opt-barrier(t)",
                                           "r = f32[4] get-tuple-element(b), index=1"),
    "a copy that is started": entry("x = f32[4] parameter(0)", "s = (f32[4], f32[4], u32[]) copy-start(x)", "d = f32[4] copy-done(s)", "r = f32[4] negate(d)"),
    "a copy that is returned": entry("x = f32[4] parameter(0)", "s = (f32[4], f32[4], u32[]) copy-start(x)", "r = f32[4] copy-done(s)"),
    "the parts of a started copy": entry("x = f32[4] parameter(0)", "s = (f32[4], f32[4], u32[]) copy-start(x)", "d = f32[4] copy-done(s)",
                                         "r = u32[] get-tuple-element(s), index=2"),
    "an all-gather that is started": entry("x = f32[4] parameter(0)", "s = (f32[4], f32[8]) all-gather-start(x), replica_groups={{0,1}}, dimensions={0}",
                                           "r = f32[8] all-gather-done(s)"),
    "the operand of a started all-gather": entry("x = f32[4] parameter(0)", "s = (f32[4], f32[8]) all-gather-start(x), replica_groups={{0,1}}, dimensions={0}",
                                                 "d = f32[8] all-gather-done(s)", "o = f32[4] get-tuple-element(s), index=0", "r = (f32[4], f32[8]) tuple(o, d)"),
    "two all-gathers that are started": entry(
        "x = f32[4] parameter(0)", "y = f32[2] parameter(1)",
        "s = ((f32[4], f32[2]), (f32[8], f32[4])) all-gather-start(x, y), replica_groups={{0,1}}, dimensions={0}", "r = (f32[8], f32[4]) all-gather-done(s)"),
    "a permutation that is started": entry("x = f32[4] parameter(0)", "s = (f32[4], f32[4]) collective-permute-start(x), source_target_pairs={{0,1},{1,0}}",
                                           "r = f32[4] collective-permute-done(s)"),
    "an all-reduce that is started": entry("x = f32[4] parameter(0)", "s = f32[4] all-reduce-start(x), replica_groups={{0,1}}, to_apply=add",
                                           "r = f32[4] all-reduce-done(s)", before=ADD),
    "an all-gather that starts without a result": entry("x = f32[4] parameter(0)", "s = (f32[4]) all-gather-start(x), replica_groups={{0,1}}, dimensions={0}",
                                                        "r = f32[8] all-gather-done(s)"),
    "an asynchronous call": entry("x = f32[4] parameter(0)", "s = ((f32[4]), f32[4], u32[]) async-start(x), calls=f", "u = ((f32[4]), f32[4], u32[]) async-update(s)",
                                  "r = f32[4] async-done(u)", before=F),
    "a call within a call": entry("x = f32[4] parameter(0)", "r = f32[4] call(x), to_apply=g",
                                  before=F + "g {\n  p = f32[4] parameter(0)\n  a = f32[4] call(p), to_apply=f\n  ROOT n = f32[4] add(a, p)\n}\n"),
    "a call with too many operands": entry("x = f32[4] parameter(0)", "r = f32[4] call(x, x), to_apply=f", before=F),
    "a call of another type": entry("x = s32[4] parameter(0)", "r = s32[4] call(x), to_apply=f", before=F),
    "a tuple of another type": entry("x = f32[4] parameter(0)", "t = (f32[5]) tuple(x)", "r = f32[5] get-tuple-element(t), index=0"),
    "a field that is missing": entry("x = f32[4] parameter(0)", "t = (f32[4]) tuple(x)", "r = f32[4] get-tuple-element(t), index=1"),
    "a fusion in a loop": entry(
        "x = f32[4] parameter(0)", "z = s32[] constant(0)", "i = (s32[], f32[4]) tuple(z, x)", "w = (s32[], f32[4]) while(i), condition=c, body=b",
        "r = f32[4] get-tuple-element(w), index=1",
        before=F + "c {\n  s = (s32[], f32[4]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(3)\n"
        "  ROOT l = pred[] compare(i, n), direction=LT\n}\nb {\n  s = (s32[], f32[4]) parameter(0)\n  i = s32[] get-tuple-element(s), index=0\n"
        "  x = f32[4] get-tuple-element(s), index=1\n  o = s32[] constant(1)\n  j = s32[] add(i, o)\n  y = f32[4] fusion(x), kind=kLoop, calls=f\n"
        "  dead = f32[4] exponential(x)\n  ROOT t = (s32[], f32[4]) tuple(j, y)\n}\n"),
    **{f"a normalisation that gives {result}": entry(
        "x = f32[2,3,4] parameter(0)", "s = f32[3] parameter(1)", "o = f32[3] parameter(2)", "m = f32[3] parameter(3)", "v = f32[3] parameter(4)",
        f"r = {result} batch-norm-inference(x, s, o, m, v), epsilon=0.001, feature_index=1") for result in ("f32[2,3,4]", "f32[2,4,3]")},
    "a normalisation along another dimension": entry(
        "x = f32[2,3,4] parameter(0)", "s = f32[3] parameter(1)", "r = f32[2,3,4] batch-norm-inference(x, s, s, s, s), epsilon=0.001, feature_index=2"),
    "a composite in a loop": entry(
        "x = f32[2,3] parameter(0)", "w = f32[2,3] while(x), condition=c, body=b", "r = f32[2,3] negate(w)",
        before="c {\n  s = f32[2,3] parameter(0)\n  ROOT p = pred[] constant(false)\n}\nb {\n  s = f32[2,3] parameter(0)\n  k = f32[3] constant({1,2,3})\n"
        "  ROOT n = f32[2,3] batch-norm-inference(s, k, k, k, k), epsilon=0.001, feature_index=1\n}\n"),
    "nodes that nothing needs": entry("x = f32[4] parameter(0)", "d = f32[4] exponential(x)", "y = f32[4] parameter(1)", "r = f32[4] negate(x)"),
}
