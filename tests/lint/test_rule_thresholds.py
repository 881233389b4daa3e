"""The smallest case that a rule reports, and the one just below it: sizes, counts and trips at which rules begin and end."""

from __future__ import annotations

import pytest

from irscope.lint import find_rule
from irscope.source import Severity
from tests.lint.test_rule_limits import found


def entry(*lines: str, header: str = "") -> str:
    """A module whose entry has these instructions, the last one its result."""
    *others, last = (line for group in lines for line in group.strip().splitlines())
    return f"HloModule m\n\n{header}ENTRY e {{\n" + "".join(f"  {line.strip()}\n" for line in others) + f"  ROOT {last.strip()}\n}}\n"


def shape(*sizes: int) -> str:
    return f"f32[{','.join(map(str, sizes))}]"


@pytest.mark.parametrize(("sizes", "reported"), [
    ((8192, 2), True), ((8191, 2), False),  # 16384 elements
    ((8192, 3), True), ((8192, 4), False), ((8192, 3, 1), True),  # the last axis that is longer than 1
    ((64, 63, 5, 3), True), ((63, 63, 5, 3), False),  # another axis is long
])
def test_a_short_last_axis_of_a_large_transpose(sizes: tuple[int, ...], reported: bool) -> None:
    order = tuple(reversed(range(len(sizes))))
    text = entry(f"x = {shape(*reversed(sizes))} parameter(0)", f"t = {shape(*sizes)} transpose(x), dimensions={{{','.join(map(str, order))}}}")
    assert len(found("LAY005", text)) == reported


@pytest.mark.parametrize(("n", "products", "words"), [
    (128, 2, "%t (64 KiB) stays alive across 2 products for this addition: 64 KiB in all"), (127, 2, ""), (128, 1, ""),
    (128, 3, "%t (64 KiB) stays alive across 3 products for this addition: 64 KiB in all"),
])
def test_a_value_of_64_kib_that_two_products_keep_alive(n: int, products: int, words: str) -> None:
    dots = [f"c{i} = {shape(n, n)} dot({'t' if not i else f'c{i - 1}'}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
            for i in range(products)]
    text = entry(f"x = {shape(n, n)} parameter(0)", f"w = {shape(n, n)} parameter(1)", f"t = {shape(n, n)} tanh(x)", *dots,
                 f"y = {shape(n, n)} add(t, c{products - 1})")
    assert [f.message for f in found("FUS005", text)] == ([words] if words else [])


@pytest.mark.parametrize(("n", "reported"), [(1024, True), (1023, False)])
def test_arithmetic_on_1024_equal_elements(n: int, reported: bool) -> None:
    text = entry(f"x = {shape(n)} parameter(0)", "s = f32[] parameter(1)", f"b = {shape(n)} broadcast(s), dimensions={{}}",
                 f"r = {shape(n)} sqrt(b)", f"y = {shape(n)} multiply(x, r)")
    assert len(found("BRD005", text)) == reported


@pytest.mark.parametrize(("type", "width", "padded"), [
    ("f32", 115, "pad it to 128: 11.3 %"), ("f32", 114, ""),  # 12.3 % more
    ("f32", 127, "pad it to 128: 0.8 %"), ("f32", 120, ""), ("f32", 128, ""),  # multiples of 8
    ("s8", 120, "pad it to 128: 6.7 %"), ("s8", 112, ""), ("f32", 63, ""),  # multiples of 16 in bytes; short ones
])
def test_a_width_that_little_padding_aligns(type: str, width: int, padded: str) -> None:
    text = entry(f"x = {type}[8,256] parameter(0)", f"w = {type}[256,{width}] parameter(1)",
                 f"d = f32[8,{width}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
    assert [(f.help or "").startswith(padded) for f in found("SHP002", text)] == ([True] if padded else [])


def loop(trips: int, steps: int = 1, columns: int = 32, type: str = "f32") -> str:
    """A counted loop; its condition and body have two operators, and so many more."""
    x = f"{type}[16,{columns}]"
    state = f"(s32[], {x})"
    body = "".join(f"  v{i} = {x} negate(v{i - 1})\n" for i in range(1, steps + 1))
    return entry(f"x = {x} parameter(0)", "z = s32[] constant(0)", f"a = {state} tuple(z, x)", f"l = {state} while(a), condition=below, body=step",
                 f"g = {x} get-tuple-element(l), index=1", header=f"""below {{
  p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant({trips})
  ROOT c = pred[] compare(i, n), direction=LT
}}

step {{
  p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  v0 = {x} get-tuple-element(p), index=1
{body}  ROOT r = {state} tuple(j, v{steps})
}}

""")


def test_a_loop_of_two_to_eight_trips_with_a_small_body_of_floats() -> None:
    assert [len(found("CTL009", loop(trips))) for trips in (0, 1, 2, 8, 9)] == [0, 0, 1, 1, 0]
    assert [len(found("CTL009", loop(3, steps))) for steps in (30, 31)] == [1, 0]  # 32 operators with the counter and its test
    assert [len(found("CTL009", loop(3, columns=columns))) for columns in (1024, 1025)] == [1, 0]  # 64 KiB
    assert found("CTL009", loop(3, type="s32")) == []


@pytest.mark.parametrize(("count", "n", "reported"), [(16, 2047, True), (15, 2047, False), (16, 2048, False)])
def test_sixteen_kernels_in_a_row_of_less_than_16_kib(count: int, n: int, reported: bool) -> None:
    """A negation of 2048 floats reads and writes 8 KiB."""
    lines = [f"p{i} = {shape(n)} parameter({i})\nq{i} = {shape(n)} negate(p{i})" for i in range(count)]
    text = entry(*lines, f"t = ({', '.join([shape(n)] * count)}) tuple({', '.join(f'q{i}' for i in range(count))})")
    assert [f.message.startswith(f"{count} kernels in a row") for f in found("FUS020", text)] == [True] * reported


def test_runs_of_small_kernels_end_at_a_large_one() -> None:
    def runs(*counts: int) -> list[tuple[str, int]]:
        sizes = [n for count in counts for n in (*[16] * count, 4096)][:-1]
        lines = [f"p{i} = {shape(n)} parameter({i})\nq{i} = {shape(n)} negate(p{i})" for i, n in enumerate(sizes)]
        text = entry(*lines, f"t = ({', '.join(map(shape, sizes))}) tuple({', '.join(f'q{i}' for i in range(len(sizes)))})")
        return [(f.message, len(f.notes)) for f in found("FUS020", text)]

    first, second = ((f"{count} kernels in a row from here move {moved} together", 3) for count, moved in ((16, "2 KiB"), (24, "3 KiB")))
    assert runs(16, 24) == [second, first] and runs(16, 15) == [first] and runs(15, 24) == [second] and runs(15, 15) == []


@pytest.mark.parametrize(("sizes", "others", "reported"), [
    ((128, 128), (), True), ((128, 127), (), False),  # 64 KiB
    ((128, 128), (128, 64), True), ((128, 128), (2, 64, 128), True), ((128, 128), (129, 128), False),  # half of the results
])
def test_a_state_of_64_kib_that_is_half_of_the_results(sizes: tuple[int, ...], others: tuple[int, ...], reported: bool) -> None:
    new = f", {shape(*others)}" if others else ""
    lines = [f"w = {shape(*sizes)} parameter(0)", "s = f32[] parameter(1)", f"n = {shape(*sizes)} negate(w)"]
    lines += [f"o = {shape(*others)} broadcast(s), dimensions={{}}"] if others else []
    text = entry(*lines, f"t = ({shape(*sizes)}{new}) tuple(n{', o' if others else ''})")
    assert len(found("MEM002", text)) == reported


def test_every_parameter_gives_its_memory_to_one_result() -> None:
    lines = ["w = f32[128,128] parameter(0)", "n = f32[128,128] negate(w)", "a = f32[128,128] abs(w)"]
    (one,) = found("MEM002", entry(*lines, "t = (f32[128,128], f32[128,128]) tuple(n, a)"))
    assert one.message.startswith("1 result has the type of a parameter (64 KiB)")
    assert found("MEM002", entry(*lines, "t = (f32[128,128], f32[128,128], f32[128,128]) tuple(n, a, a)")) == []


@pytest.mark.parametrize(("n", "reported"), [(4, True), (3, False)])
def test_a_column_and_a_vector_of_four(n: int, reported: bool) -> None:
    assert len(found("BRD003", find_rule("BRD003").bad[0].text.replace("64", str(n)))) == reported


@pytest.mark.parametrize(("pieces", "columns", "reported"), [(9, 1821, True), (9, 1820, False), (16, 1024, True), (8, 8192, False)])
def test_nine_pieces_of_64_kib_in_all(pieces: int, columns: int, reported: bool) -> None:
    given = [f"p{i} = {shape(1, columns)} parameter({i})" for i in range(pieces)]
    text = entry(*given, f"c = {shape(pieces, columns)} concatenate({', '.join(f'p{i}' for i in range(pieces))}), dimensions={{0}}",
                 f"y = {shape(pieces, columns)} exponential(c)")
    assert [f.message.startswith(f"{pieces} pieces (64") for f in found("FUS010", text)] == [True] * reported


@pytest.mark.parametrize(("rank", "words"), [(7, ["7 axes; 1 value of this graph has more than 6"]), (6, [])])
def test_seven_axes_are_many(rank: int, words: list[str]) -> None:
    sizes = [2] * rank
    assert [f.message for f in found("SHP003", entry(f"x = {shape(*sizes)} parameter(0)", f"y = {shape(*sizes)} negate(x)"))] == words


@pytest.mark.parametrize(("rows", "severity"), [
    (1, Severity.INFO), (255 / 256, None), (1024, Severity.WARNING), (1023, Severity.INFO),
])
def test_a_captured_tensor_of_a_kib_and_of_a_mib(rows: float, severity: Severity | None) -> None:
    """A row is 1 KiB."""
    text = f"""graph(%x : Float(4)):
  %c : Float({int(256 * rows)}) = prim::Constant[value=<Tensor>]()
  %l : Float({int(256 * rows)}) = aten::lift_fresh(%c)
  return (%l)
"""
    assert [f.severity for f in found("MEM006", text, "torchscript")] == ([] if severity is None else [severity])


def test_five_other_large_constants_are_named() -> None:
    lines = [f"w{i} = {shape(512, 1024 if i == 2 else 512)} constant({{...}})" for i in range(8)]
    kinds = ", ".join(shape(512, 1024 if i == 2 else 512) for i in range(8))
    (one,) = found("MEM003", entry(*lines, f"t = ({kinds}) tuple({', '.join(f'w{i}' for i in range(8))})"))
    assert [note.text for note in one.notes] == [f"%w{i} is another" for i in (0, 1, 3, 4, 5)]


@pytest.mark.parametrize(("rows", "columns", "reported"), [(512, 512, True), (512, 511, False)])
def test_a_constant_of_a_mib(rows: int, columns: int, reported: bool) -> None:
    text = entry(f"x = {shape(rows, columns)} parameter(0)", f"w = {shape(rows, columns)} constant({{...}})", f"d = {shape(rows, columns)} add(x, w)")
    assert len(found("MEM003", text)) == reported


@pytest.mark.parametrize(("rows", "columns", "reported"), [(3, 2, True), (3, 1, False), (1, 3, False)])
def test_where_an_axis_of_one_element_lies_is_no_other_layout(rows: int, columns: int, reported: bool) -> None:
    one = f"{shape(rows, columns)}{{1,0}}"
    text = entry(f"x = {one} parameter(0)", f"n = {one} exponential(x)", f"c = {shape(rows, columns)}{{0,1}} copy(n)")
    assert len(found("LAY003", text)) == reported


ADD = "add {\n  a = TYPE[] parameter(0)\n  b = TYPE[] parameter(1)\n  ROOT s = TYPE[] add(a, b)\n}\n\n"


@pytest.mark.parametrize(("type", "terms", "reported"), [("bf16", 1024, True), ("bf16", 1023, False), ("f16", 1024, True), ("f32", 1024, False)])
def test_a_sum_of_1024_halves(type: str, terms: int, reported: bool) -> None:
    words = [f"{terms} terms are summed in {type}"] * reported
    text = entry(f"p = {type}[3,{terms}] parameter(0)", f"z = {type}[] constant(0)", f"r = {type}[3] reduce(p, z), dimensions={{1}}, to_apply=add",
                 header=ADD.replace("TYPE", type))
    assert [f.message for f in found("DTY004", text)] == words
    text = entry(f"p = {type}[3,{terms}] parameter(0)", f"w = {type}[{terms},2] parameter(1)",
                 f"d = {type}[3,2] dot(p, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")
    assert [f.message for f in found("DTY004", text)] == words


@pytest.mark.parametrize(("columns", "reported"), [(64, True), (63, False)])
def test_weights_of_16_kib(columns: int, reported: bool) -> None:
    """As floats: bytes that are converted before a product, and the floats of a program of bytes."""
    dot = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    converted = entry("x = f32[2,64] parameter(0)", f"q = s8[64,{columns}] parameter(1)", f"w = {shape(64, columns)} convert(q)",
                      f"d = {shape(2, columns)} dot(x, w), {dot}")
    assert len(found("DTY005", converted)) == reported
    left = entry("x = s8[2,64] parameter(0)", "q = s8[64,64] parameter(1)", f"w = {shape(64, columns)} parameter(2)", f"a = s32[2,64] dot(x, q), {dot}",
                 "f = f32[2,64] convert(a)", f"b = {shape(2, columns)} dot(f, w), {dot}")
    assert [f.message for f in found("DTY006", left)] == ["1 of 2 dot operations are quantised; 1 with 16 KiB of weights are not"] * reported


@pytest.mark.parametrize(("type", "rows", "reported"), [("s64", 512, True), ("s64", 511, False), ("u64", 512, True), ("s32", 1024, False)])
def test_indices_of_4_kib(type: str, rows: int, reported: bool) -> None:
    i = f"{type}[{rows},1]"
    text = entry("x = f32[1000,64] parameter(0)", f"i = {i} parameter(1)", f"s = {i} add(i, i)",
                 f"g = {shape(rows, 64)} gather(x, s), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, "
                 "slice_sizes={1,64}")
    assert [f.message for f in found("DTY007", text)] == ["the indices of gather are computed in 64 bits (4 KiB)"] * reported


@pytest.mark.parametrize(("n", "reported"), [(4096, True), (4095, False)])
def test_work_on_4096_elements_that_are_the_same_in_every_run(n: int, reported: bool) -> None:
    text = entry(f"x = {shape(n)} parameter(0)", f"i = {shape(n)} iota(), iota_dimension=0", f"s = {shape(n)} sine(i)", f"r = {shape(n)} multiply(x, s)")
    assert [f.message for f in found("ALG001", text)] == ["%s is the same in every run: 1 operations on constants give 16 KiB"] * reported


@pytest.mark.parametrize(("n", "words"), [(16385, ", and pass it as a parameter"), (16384, "")])
def test_more_than_64_kib_that_are_the_same_in_every_run_are_better_passed(n: int, words: str) -> None:
    text = entry(f"x = {shape(n)} parameter(0)", f"i = {shape(n)} iota(), iota_dimension=0", f"s = {shape(n)} sine(i)", f"r = {shape(n)} multiply(x, s)")
    assert [f.help for f in found("ALG001", text)] == ["compute it once, before the model is traced" + words]


def test_work_on_one_number_alone_is_left_out() -> None:
    """Compilers compute it once, however many elements it fills."""
    def filled(source: str, attributes: str) -> int:
        text = entry("x = f32[8192] parameter(0)", f"c = {source}", f"b = f32[8192] broadcast(c), dimensions={attributes}", "s = f32[8192] sine(b)",
                     "r = f32[8192] multiply(x, s)")
        return len(found("ALG001", text))

    assert filled("f32[] constant(2)", "{}") == 0 and filled("f32[8192] iota(), iota_dimension=0", "{0}") == 1


def test_five_of_many_are_named() -> None:
    names = [f"w{i}" for i in range(7)]
    dot = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    given = [f"w{i} = f32[128,128] parameter({i + 2})" for i in range(7)]
    new = entry("x = f32[128,128] parameter(0)", "y = f32[128,128] parameter(1)", *given, *(f"n{name} = f32[128,128] negate({name})" for name in names),
                f"t = ({', '.join(['f32[128,128]'] * 7)}) tuple({', '.join(f'n{name}' for name in names)})")
    left = entry("x = s8[128,128] parameter(0)", "y = s8[128,128] parameter(1)", *given, f"q = s32[128,128] dot(x, y), {dot}",
                 "d0 = f32[128,128] convert(q)", *(f"d{i} = f32[128,128] dot(d{i - 1}, w{i - 1}), {dot}" for i in range(1, 8)), "r = f32[128,128] negate(d7)")
    halves = entry("x = f16[8,1024] parameter(0)", "y = f16[1024,1024] parameter(1)", f"d0 = f16[8,1024] dot(x, y), {dot}",
                   *(f"d{i} = f16[8,1024] dot(d{i - 1}, y), {dot}" for i in range(1, 7)), "r = f16[8,1024] negate(d6)")
    for code, text in (("MEM002", new), ("DTY006", left), ("DTY004", halves)):
        (one,) = found(code, text)
        assert len(one.notes) == 5, code


@pytest.mark.parametrize(("columns", "reported"), [(32, True), (31, False)])
def test_4_kib_that_are_the_same_in_every_iteration(columns: int, reported: bool) -> None:
    text = find_rule("CTL003").bad[0].text
    assert "f32[128,128]" in text
    assert len(found("CTL003", text.replace("f32[128,128]", shape(32, columns)))) == reported


@pytest.mark.parametrize(("columns", "severity"), [(128, Severity.WARNING), (127, Severity.INFO)])
def test_64_kib_that_are_the_same_in_every_iteration_cost_time(columns: int, severity: Severity) -> None:
    text = find_rule("CTL003").bad[0].text.replace("f32[128,128]", shape(128, columns))
    assert [f.severity for f in found("CTL003", text, policy="irscope")] == [severity]


def changed(code: str, *changes: tuple[str, str]) -> list[str]:
    """What a rule says of its first bad example with other sizes."""
    fixture = find_rule(code).bad[0]
    text = fixture.text
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return [f.message for f in found(code, text, policy=fixture.policy)]


@pytest.mark.parametrize(("code", "size", "least"), [("ALG011", "1024", 16), ("ALG012", "256", 16), ("ALG007", "4096", 1024)])
def test_what_is_smaller_costs_next_to_nothing(code: str, size: str, least: int) -> None:
    assert len(changed(code, (size, str(least)))) == 1 and changed(code, (size, str(least - 1))) == []


@pytest.mark.parametrize(("kept", "words"), [(32, ["%d computes 64 rows or columns, and %s (slice) keeps 32"]), (33, [])])
def test_half_of_a_product_is_kept(kept: int, words: list[str]) -> None:
    assert changed("ALG014", ("f32[4,1,8000]", f"f32[4,{kept},8000]"), ("[63:64]", f"[{64 - kept}:64]")) == words


@pytest.mark.parametrize(("padded", "reported"), [(142, True), (141, False)])
def test_a_tenth_of_padding(padded: int, reported: bool) -> None:
    """129 rows are padded."""
    said = changed("ALG015", ("0x0_127x0_0", f"0x0_{padded - 129}x0_0"), ("f32[4,256,", f"f32[4,{padded},"))
    assert said == [f"%p pads to {padded}, and %s keeps 129 of them: 2 products in between compute the padding"] * reported


@pytest.mark.parametrize(("readers", "reported"), [(2, True), (4, True), (5, False)])
def test_an_expensive_value_with_two_to_four_readers(readers: int, reported: bool) -> None:
    x = "f32[4096,1024]{1,0}"
    lines = [f"a{i} = {x} {operator}(d)" for i, operator in enumerate("negate abs floor ceil sine".split()[:readers])]
    text = entry(f"x = {x} parameter(0)", f"d = {x} sqrt(x)", *lines, f"t = ({', '.join([x] * readers)}) tuple({', '.join(f'a{i}' for i in range(readers))})")
    said = f"%d (sqrt, 16 MiB) is stored for {readers} readers: "
    assert [(f.message.startswith(said), len(f.notes)) for f in found("FUS004", text, policy="xla-cpu")] == [(True, readers)] * reported


OPERATORS = "tanh negate sine cosine abs exponential floor ceil sqrt log"


@pytest.mark.parametrize(("times", "period", "reported"), [(8, 8, True), (7, 10, False), (8, 7, False), (10, 7, True), (32, 2, True), (64, 1, False)])
def test_sequences_that_repeat_eight_times_and_are_64_operators(times: int, period: int, reported: bool) -> None:
    names = OPERATORS.split()[:period] * times
    lines = [f"v{i} = f32[8] {name}(v{i - 1})" for i, name in enumerate(names, 1)]
    text = entry("v0 = f32[8] parameter(0)", *lines, f"r = f32[4] slice(v{len(names)}), slice={{[0:4]}}")
    said = f"{times} equal sequences of {period} operations follow each other from here: "
    assert [f.message.startswith(said) for f in found("CTL002", text)] == [True] * reported


@pytest.mark.parametrize(("count", "words", "notes"), [(1, "calls torch for it, and nothing", 0), (2, "it, 2 times, and", 1), (4, "it, 4 times, and", 2)])
def test_calls_of_one_operator_are_counted_and_two_named(count: int, words: str, notes: int) -> None:
    for begin in ("torch.ops.aten", "aten", "torch.ops.prims", "prims"):
        calls = "\n    ".join(f"buf{i} = {begin}.cumsum.default(arg0_1, dim=1)" for i in range(1, count + 1))
        text = find_rule("KRN005").bad[0].text.replace("buf1 = torch.ops.aten.cumsum.default(arg0_1, dim=1)", calls)
        (one,) = found("KRN005", text, "inductor")
        assert words in one.message and len(one.notes) == notes
