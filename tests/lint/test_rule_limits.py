"""Where rules begin and end: what lies just below and just above a limit, and the parts of a finding that depend on the case."""

from __future__ import annotations

import pytest

import irscope
from irscope.lint import Fixture, find_rule, lint_module
from irscope.lint.settings import Settings
from irscope.source import Finding, Severity


def found(code: str, text: str, format: str = "hlo", policy: str = "auto") -> list[Finding]:
    """What one rule finds in a text."""
    reading = irscope.load(text, format=format)
    assert not [f.message for f in reading.findings if f.severity is Severity.ERROR]
    return lint_module(reading.module(), [find_rule(code)], Settings(policy))


def convolution(features: int, size: int, type: str = "s16") -> str:
    """A convolution of bytes with a narrow result."""
    out = 17 - size
    return f"""HloModule m

ENTRY e {{
  x = s8[1,16,16,{features}]{{3,2,1,0}} parameter(0)
  k = s8[{size},{size},{features},4]{{3,2,1,0}} parameter(1)
  ROOT y = {type}[1,{out},{out},4]{{3,2,1,0}} convolution(x, k), window={{size={size}x{size}}}, dim_labels=b01f_01io->b01f
}}
"""


def test_a_convolution_sums_the_window_of_every_feature() -> None:
    """-128 times -128 is 2**14; s16 ends at 2**15 - 1, and holds one such product, not two."""
    assert found("DTY011", convolution(1, 1)) == []
    for features, size, terms in ((2, 1, 2), (1, 2, 4), (3, 2, 12)):
        (one,) = found("DTY011", convolution(features, size))
        assert one.message == (f"{terms} terms are summed in s16, which holds -32768 to 32767: "
                               f"the operands allow {terms * -128 * 127} to {terms * 2**14}")
    assert found("DTY011", convolution(3, 2, "s32")) == []


def test_what_a_float_was_before_its_conversion_bounds_no_sum() -> None:
    """A float may become any byte; of numbers that were 0 or 1, 32767 fit into s16."""
    def summed(type: str, n: int) -> list[Finding]:
        sum_of = "sum {\n  a = s16[] parameter(0)\n  b = s16[] parameter(1)\n  ROOT c = s16[] add(a, b)\n}\n"
        return found("DTY011", f"HloModule m\n\n{sum_of}\nENTRY e {{\n  x = {type}[{n}]{{0}} parameter(0)\n  w = s16[{n}]{{0}} convert(x)\n"
                               f"  z = s16[] constant(0)\n  ROOT r = s16[] reduce(w, z), dimensions={{0}}, to_apply=sum\n}}\n")

    assert summed("pred", 32767) == [] and len(summed("pred", 32768)) == 1
    assert summed("s8", 256) == [] and len(summed("s8", 257)) == 1  # 256 times -128 is -2**15
    assert len(summed("f32", 2)) == 1


def backward(bytes_saved: int, bytes_other: int) -> str:
    """A backward graph with so many bytes that the forward graph saved, and others."""
    return f"""class GraphModule(torch.nn.Module):
    def forward(self, primals_1: "i8[{bytes_other}]", tanh: "i8[{bytes_saved}]", tangents_1: "i8[{bytes_saved}]"):
        out: "i8[{bytes_saved}]" = torch.ops.aten.mul.Tensor(tangents_1, tanh)
        return (out,)
"""


def test_saved_tensors_dominate_from_a_mebibyte_and_half_of_all_inputs_on() -> None:
    mib = 2**20
    one = backward(mib, 0).replace('primals_1: "i8[0]", ', "")  # half of all: the gradient is as large
    assert [f.message for f in found("MEM005", one, "export")] == [
        "1 tensor saved for the backward pass: 1 MiB of the 2 MiB that it takes, %tanh 1 MiB of them"]
    assert found("MEM005", backward(mib - 1, 0).replace('primals_1: "i8[0]", ', ""), "export") == []
    assert found("MEM005", backward(mib, 1), "export") == []


def test_other_calls_that_are_not_in_the_text_are_counted_and_two_named() -> None:
    def calls(n: int) -> tuple[str, list[str]]:
        lines = "".join(f'  %c{i} : Tensor = prim::CallMethod[name="forward"](%layer, %x)\n' for i in range(n))
        (one,) = found("CTL004", "graph(%self : __torch__.Net, %x : Float(2)):\n"
                       f'  %layer : __torch__.Layer = prim::GetAttr[name="layer"](%self)\n{lines}  return (%c0)\n', "torchscript")
        assert one.help == "print inlined_graph instead of graph"
        return one.message, [note.text for note in one.notes]

    assert calls(1) == ("prim::CallMethod calls a function that is not in this text: its cost and its findings are unknown", [])
    message, notes = calls(2)
    assert ", and so do 1 other" in message and notes == ["%c1 is another"]
    message, notes = calls(4)
    assert ", and so do 3 others: " in message and notes == ["%c1 is another", "%c2 is another"]


def test_only_a_branch_has_help_that_a_loop_that_ends_by_data_has_not() -> None:
    branch, loop = find_rule("CTL006").bad
    (one,), (other,) = found("CTL006", branch.text, "torchscript"), found("CTL006", loop.text, "torchscript")
    assert "both branches are in the graph" in one.message and one.help == "torch.where, if both branches are cheap"
    assert "its end depends on data" in other.message and not other.help


def test_of_a_draw_with_a_key_the_readers_of_its_numbers_count() -> None:
    """The next key, the first element, may be read as often as one likes."""
    def draws(first: int, second: int) -> list[Finding]:
        return found("FUS008", f"""#[version = "0.0.5"]
def @main(%x: Tensor[(64, 64), float32], %k: Tensor[(10), uint64]) {{
  %0 = random.uniform(%k, 0f, 1f, out_shape=[64, 64], out_dtype="float32");
  %1 = %0.{first};
  %2 = %0.{second};
  %3 = negative(%1);
  %4 = exp(%1);
  (%3, %4, %2)
}}
""", "relay")

    (one,) = draws(1, 0)
    assert "is drawn once and used by 2 operations" in one.message
    assert draws(0, 1) == []


def test_a_write_in_place_names_its_operand_before_its_reader() -> None:
    def beside(before: str, after: str) -> list[str]:
        return [f.message for f in found("FUS009", f"""graph(%a : Float(4, 4), %b : Float(4, 4)):
  %2 : Float(4, 4) = aten::{before}(%a)
  %3 : Float(4, 4) = aten::relu_(%2)
  %4 : Float(4, 4) = aten::{after}(%3)
  return (%4)
""", "torchscript")]

    assert beside("t", "t") == []
    said = "aten::relu_ writes in place: TorchScript's fuser does not fuse it with "
    assert beside("exp", "t") == beside("exp", "tanh") == [said + "%2 (aten::exp)"]
    assert beside("t", "tanh") == [said + "%4 (aten::tanh)"]


def sorted_rows(length: int, start: int, stop: int) -> list[Finding]:
    (text,) = (Fixture.hlo(f"""
        ENTRY e {{
          x = f32[32,{length}] parameter(0)
          s = f32[32,{length}] sort(x), dimensions={{1}}, is_stable=true, to_apply=less
          ROOT y = f32[32,{stop - start}] slice(s), slice={{[0:32], [{start}:{stop}]}}
        }}
    """).text,)
    return found("ALG013", text)


def test_few_are_an_eighth_of_rows_of_64_at_one_end() -> None:
    assert len(sorted_rows(64, 0, 8)) == 1 and sorted_rows(64, 0, 9) == [] and sorted_rows(63, 0, 1) == []
    (one,), (last,), (many,) = sorted_rows(1024, 0, 1), sorted_rows(1024, 1020, 1024), sorted_rows(1024, 0, 128)
    assert one.help == "use a maximum, minimum or argmax"
    assert (last.message, last.help) == ("rows of 1024 elements are sorted, and only the last 4 of each are used", "use top_k with k=4")
    assert "only the first 128 of each" in many.message and sorted_rows(1024, 0, 129) == []


@pytest.mark.parametrize(("index", "few"), [(0, "first 1"), (1023, "last 1"), (3, "first 4"), (500, "")])
def test_a_gather_at_one_place_is_a_slice(index: int, few: str) -> None:
    text = Fixture.hlo(f"""
        ENTRY e {{
          x = f32[32,1024] parameter(0)
          s = f32[32,1024] sort(x), dimensions={{1}}, is_stable=true, to_apply=less
          i = s32[1] constant({{{index}}})
          ROOT y = f32[32] gather(s, i), offset_dims={{0}}, collapsed_slice_dims={{1}}, start_index_map={{1}}, index_vector_dim=0, slice_sizes={{32,1}}
        }}
    """).text
    assert [f"only the {few} of each" in f.message for f in found("ALG013", text)] == ([True] if few else [])


def test_elements_at_both_ends_of_sorted_rows_need_the_sort() -> None:
    text = Fixture.hlo("""
        ENTRY e {
          x = f32[32,1024] parameter(0)
          s = f32[32,1024] sort(x), dimensions={1}, is_stable=true, to_apply=less
          a = f32[32,1] slice(s), slice={[0:32], [0:1]}
          b = f32[32,1] slice(s), slice={[0:32], [1023:1024]}
          ROOT t = (f32[32,1], f32[32,1]) tuple(a, b)
        }
    """).text
    assert found("ALG013", text) == []


@pytest.mark.parametrize(("inner", "outer", "words"), [
    ((2, 0, 1), (1, 2, 0), "%b undoes %t (384 B of traffic)"), ((2, 0, 1), (2, 0, 1), "%t and %b can be one transpose (192 B of traffic)"),
])
def test_transposes_that_go_save_what_they_read_and_write(inner: tuple[int, ...], outer: tuple[int, ...], words: str) -> None:
    """Of 96 bytes, both transposes of a pair that cancels, and one of a pair that becomes one."""
    first = [(2, 3, 4)[d] for d in inner]
    second = [first[d] for d in outer]
    shapes = [",".join(map(str, shape)) for shape in (first, second, inner, outer)]
    (one,) = found("LAY001", "HloModule m\n\nENTRY e {{\n  p = f32[2,3,4] parameter(0)\n  t = f32[{0}] transpose(p), dimensions={{{2}}}\n"
                             "  ROOT b = f32[{1}] transpose(t), dimensions={{{3}}}\n}}\n".format(*shapes))
    assert one.message == words


def convolved(between: int, others: int = 0) -> list[Finding]:
    """A convolution between transposes, with so many elementwise operators before the second one, and others beside it."""
    conv = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
    steps = "".join(f"  v{i} = f32[1,8,8,4] negate(v{i - 1})\n" for i in range(1, between + 1))
    more = "".join(f"  o{i} = f32[1,8,8,4] convolution(y{i}, w), {conv}\n" for i in range(others))
    given = "".join(f"  y{i} = f32[1,8,8,4] parameter({i + 2})\n" for i in range(others))
    names, types = "".join(f", o{i}" for i in range(others)), ", f32[1,8,8,4]" * others
    return found("LAY002", f"""HloModule m

ENTRY e {{
  x = f32[1,4,8,8] parameter(0)
  w = f32[3,3,4,4] parameter(1)
{given}  t = f32[1,8,8,4] transpose(x), dimensions={{0,2,3,1}}
  v0 = f32[1,8,8,4] convolution(t, w), {conv}
{steps}{more}  b = f32[1,4,8,8] transpose(v{between}), dimensions={{0,3,1,2}}
  ROOT r = (f32[1,4,8,8]{types}) tuple(b{names})
}}
""")


def test_convolutions_between_transposes_are_half_of_all_and_close_to_them() -> None:
    assert [f.message for f in convolved(0)] == ["1 of 1 convolutions are between transposes, which move 4 KiB"]
    assert [f.message for f in convolved(8, 1)] == ["1 of 2 convolutions are between transposes, which move 4 KiB"]
    assert convolved(0, 2) == [] and convolved(9) == []


@pytest.mark.parametrize(("rank", "text"), [
    (5, """
          t = f32[1,8,8,4] transpose(x), dimensions={0,2,3,1}
          u = f32[1,1,8,8,4] bitcast(t)
          w = f32[1,3,3,4,4] parameter(1)
          c = f32[1,1,8,8,4] convolution(u, w), window={size=1x3x3 pad=0_0x1_1x1_1}, dim_labels=b012f_012io->b012f
          v = f32[1,8,8,4] bitcast(c)
          ROOT b = f32[1,4,8,8] transpose(v), dimensions={0,3,1,2}"""),
    (3, """
          y = f32[4,8,8] bitcast(x)
          t = f32[8,8,4] transpose(y), dimensions={1,2,0}
          w = f32[3,4,4] parameter(1)
          c = f32[8,8,4] convolution(t, w), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f
          ROOT b = f32[4,8,8] transpose(c), dimensions={2,0,1}"""),
], ids=["another rank behind the transpose", "rows"])
def test_transposes_of_other_ranks_than_images_move_no_channels(rank: int, text: str) -> None:
    assert found("LAY002", f"HloModule m\n\nENTRY e {{\n  x = f32[1,4,8,8] parameter(0){text}\n}}\n") == [], rank


SMALL = "dot(v{}, v{}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"


def products(n: int) -> str:
    return "".join(f"  v{i} = f32[8,8] {SMALL.format(i - 1, i - 1)}\n" for i in range(1, n + 1))


def test_a_program_is_bound_by_launches_from_32_kernels_on() -> None:
    """Products, and a copy of the last."""
    def launched(n: int) -> list[str]:
        return [f.message for f in found("KRN001", f"HloModule m\n\nENTRY e {{\n  v0 = f32[8,8] parameter(0)\n{products(n)}"
                                                   f"  ROOT r = f32[8,8] copy(v{n})\n}}\n")]

    assert launched(30) == []
    (one,) = launched(31)
    assert one.startswith("32 kernels cost 19.2 us to launch at 0.6 us each on cpu, of ")


def test_kernels_of_a_loop_are_launched_in_each_trip() -> None:
    def kernels(trips: int, n: int) -> int:
        (one,) = found("KRN001", f"""HloModule m

below {{
  s = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({trips})
  ROOT l = pred[] compare(i, n), direction=LT
}}

step {{
  s = (s32[], f32[8,8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  v0 = f32[8,8] get-tuple-element(s), index=1
{products(n)}  ROOT o = (s32[], f32[8,8]) tuple(j, v{n})
}}

ENTRY e {{
  x = f32[8,8] parameter(0)
  z = s32[] constant(0)
  a = (s32[], f32[8,8]) tuple(z, x)
  w = (s32[], f32[8,8]) while(a), condition=below, body=step
  ROOT r = f32[8,8] get-tuple-element(w), index=1
}}
""")
        return int(one.message.split()[0])

    assert kernels(20, 5) - kernels(20, 4) == 20
    assert kernels(30, 5) * 20 == kernels(20, 5) * 30
