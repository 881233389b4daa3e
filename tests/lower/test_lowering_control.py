"""Loops and branches: state in one place, swaps, invariants, nesting, updates in place."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.lower.interpret import interpret_program
from irscope.lower.lowering import lower
from irscope.lower.program import Copy, Loop, Step
from tests.lower import running
from tests.lower.whole import check, entry, inputs_of, module_of, reference

COUNT = """
below {{
  s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({n})
  ROOT r = pred[] compare(i, n), direction=LT
}}
"""


def loop(state: str, body: str, start: str, n: int = 5, result: str = "ROOT w = {state} while(t), condition=below, body=step") -> str:
    """A counted loop over a tuple whose element 0 is the counter."""
    step = f"step {{\n s = {state} parameter(0)\n i = s32[] get-tuple-element(s), index=0\n one = s32[] constant(1)\n j = s32[] add(i, one)\n{body}\n}}\n"
    return entry(start + "\n" + result.format(state=state), COUNT.format(state=state, n=n) + step)


def steps_in(steps: list[Step]) -> list[Step]:
    """All steps of the first loop's body."""
    return next(s for s in steps if isinstance(s, Loop)).body


def test_a_noted_number_of_trips_is_not_trusted() -> None:
    state = "(s32[], f32[4])"
    text = loop(state, """
        v = f32[4] get-tuple-element(s), index=1
        w = f32[4] add(v, v)
        ROOT r = (s32[], f32[4]) tuple(j, w)""", """
        x = f32[4] parameter(0)
        z = s32[] constant(0)
        t = (s32[], f32[4]) tuple(z, x)""", result='ROOT w = {state} while(t), condition=below, body=step, backend_config={{"known_trip_count":{{"n":"7"}}}}')
    model = check(text)
    assert [step.trips for step in model.program.steps if isinstance(step, Loop)] == [5]


def test_counting() -> None:
    state = "(s32[], f32[4])"
    check(loop(state, """
        v = f32[4] get-tuple-element(s), index=1
        w = f32[4] add(v, v)
        ROOT r = (s32[], f32[4]) tuple(j, w)""", """
        x = f32[4] parameter(0)
        z = s32[] constant(0)
        t = (s32[], f32[4]) tuple(z, x)"""))


def test_a_swap_does_not_overwrite_what_it_reads() -> None:
    state = "(s32[], f32[4], f32[4])"
    check(loop(state, """
        a = f32[4] get-tuple-element(s), index=1
        b = f32[4] get-tuple-element(s), index=2
        c = f32[4] add(a, b)
        ROOT r = (s32[], f32[4], f32[4]) tuple(j, c, a)""", """
        x = f32[4] parameter(0)
        y = f32[4] parameter(1)
        z = s32[] constant(0)
        t = (s32[], f32[4], f32[4]) tuple(z, x, y)"""))
    check(loop(state, """
        a = f32[4] get-tuple-element(s), index=1
        b = f32[4] get-tuple-element(s), index=2
        ROOT r = (s32[], f32[4], f32[4]) tuple(j, b, a)""", """
        x = f32[4] parameter(0)
        y = f32[4] parameter(1)
        z = s32[] constant(0)
        t = (s32[], f32[4], f32[4]) tuple(z, x, y)"""))


def handing_on(result: str) -> str:
    """A loop that multiplies its first array by its second, which it hands on, and what is made of its state, ``w``."""
    state = "(s32[], f32[4], f32[4])"
    return loop(state, """
        a = f32[4] get-tuple-element(s), index=1
        b = f32[4] get-tuple-element(s), index=2
        c = f32[4] multiply(a, b)
        ROOT r = (s32[], f32[4], f32[4]) tuple(j, c, b)""", """
        x = f32[4] parameter(0)
        y = f32[4] parameter(1)
        z = s32[] constant(0)
        t = (s32[], f32[4], f32[4]) tuple(z, x, y)""", result=f"w = {state} while(t), condition=below, body=step{result}")


def test_what_a_loop_hands_on_is_not_copied() -> None:
    model = check(handing_on("""
        ROOT g = f32[4] get-tuple-element(w), index=1"""))
    assert not any(isinstance(s, Copy) for s in steps_in(model.program.steps))


@pytest.mark.parametrize("moved", ["transpose({}), dimensions={{1,0}}", "reverse({}), dimensions={{0}}"])
def test_a_state_is_not_overwritten_where_it_is_still_read(moved: str) -> None:
    """The view stands behind arithmetic, in the kernel that makes the next state."""
    state = "(s32[], f32[3,3])"
    check(loop(state, f"""
        a = f32[3,3] get-tuple-element(s), index=1
        b = f32[3,3] negate(a)
        c = f32[3,3] {moved.format("b")}
        d = f32[3,3] cosine(c)
        ROOT r = (s32[], f32[3,3]) tuple(j, d)""", """
        x = f32[3,3] parameter(0)
        z = s32[] constant(0)
        t = (s32[], f32[3,3]) tuple(z, x)"""))


def test_a_state_is_not_overwritten_where_elements_of_it_are_gathered() -> None:
    """Element 0 of the old state is still read when element 0 of the new one is known."""
    state = "(s32[], f32[4], s32[4,1])"
    text = loop(state, """
        a = f32[4] get-tuple-element(s), index=1
        o = s32[4,1] get-tuple-element(s), index=2
        g = f32[4] gather(a, o), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
        b = f32[4] multiply(g, a)
        c = f32[4] cosine(b)
        ROOT r = (s32[], f32[4], s32[4,1]) tuple(j, c, o)""", """
        x = f32[4] parameter(0)
        y = s32[4,1] parameter(1)
        z = s32[] constant(0)
        t = (s32[], f32[4], s32[4,1]) tuple(z, x, y)""", result="""w = {state} while(t), condition=below, body=step
        ROOT g = f32[4] get-tuple-element(w), index=1""")
    check(text, [np.array([1, 2, 3, 4], np.float32), np.array([[3], [0], [0], [1]], np.int32)])


BEHIND = {
    "concatenation": """
        h = f32[4,8] slice(a), slice={[0:4], [0:8]}
        b = f32[4,8] cosine(h)
        m = f32[8,8] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        n = f32[4,8] slice(m), slice={[2:6], [0:8]}
        q = f32[4,8] sine(n)
        next = f32[8,8] concatenate(b, q), dimensions={0}""",
    "update": """
        b = f32[8,8] cosine(a)
        m = f32[8,8] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        n = f32[8,8] tanh(m)
        u = f32[2,3] slice(n), slice={[1:3], [0:3]}
        next = f32[8,8] dynamic-update-slice(b, u, i, i)""",
    "transpose": """
        b = f32[8,8] cosine(a)
        next = f32[8,8] transpose(b), dimensions={1,0}""",
}


@pytest.mark.parametrize("how", BEHIND)
def test_what_is_put_together_in_the_place_of_a_state_waits_for_its_readers(how: str) -> None:
    state = "(s32[], f32[8,8])"
    check(loop(state, f"""
        a = f32[8,8] get-tuple-element(s), index=1{BEHIND[how]}
        ROOT r = (s32[], f32[8,8]) tuple(j, next)""", """
        x = f32[8,8] parameter(0)
        z = s32[] constant(0)
        t = (s32[], f32[8,8]) tuple(z, x)"""))


def test_a_part_of_what_is_updated_in_place_keeps_its_later_readers() -> None:
    check(entry("""
        x = f32[2,4,4,2] parameter(0)
        y = f32[2,4,4,2] parameter(1)
        u = f32[1,2,6,2] parameter(2)
        i = s32[] parameter(3)
        k = f32[] parameter(4)
        m = f32[2,4,4,2] maximum(x, y)
        p = f32[2,4,6,2] pad(m, k), padding=0_0x0_0x0_2x0_0
        d = f32[2,4,6,2] dynamic-update-slice(p, u, i, i, i, i)
        r = f32[4,4,2] reduce(m, k), dimensions={0}, to_apply=sum
        ROOT t = (f32[2,4,6,2], f32[4,4,2]) tuple(d, r)""",
        "sum {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b)\n}\n"))


def test_a_part_of_the_first_state_keeps_its_readers_behind_the_loop() -> None:
    state = "(s32[], f32[6,8])"
    check(loop(state, """
        a = f32[6,8] get-tuple-element(s), index=1
        b = f32[6,8] cosine(a)
        ROOT r = (s32[], f32[6,8]) tuple(j, b)""", """
        x = f32[4,8] parameter(0)
        z = s32[] constant(0)
        k = f32[] constant(0)
        a = f32[4,8] sine(x)
        p = f32[6,8] pad(a, k), padding=0_2x0_0
        t = (s32[], f32[6,8]) tuple(z, p)""", result="""w = {state} while(t), condition=below, body=step
        v = f32[6,8] get-tuple-element(w), index=1
        h = f32[4,8] negate(a)
        d = f32[6,4] dot(v, h), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
        ROOT o = (f32[6,8], f32[6,4]) tuple(v, d)"""))


NESTED = """
    first { x = f32[4] parameter(0)
      n = f32[4] negate(x)
      p = (f32[4], f32[4]) tuple(n, x)
      ROOT t = ((f32[4], f32[4]), f32[4]) tuple(p, x) }
    second { x = f32[4] parameter(0)
      n = f32[4] cosine(x)
      p = (f32[4], f32[4]) tuple(x, x)
      ROOT t = ((f32[4], f32[4]), f32[4]) tuple(p, n) }
"""

KEPT = {  # how the next state %n comes from the old one, %a, and an invariant %w; whether it is written over the old one
    "a product": ("n = f32[4,4] multiply(a, w)", True),
    "a view of another value": ("t = f32[4,4] transpose(w), dimensions={1,0}\n n = f32[4,4] add(a, t)", True),
    "a view of what comes from both": ("b = f32[4,4] multiply(a, w)\n t = f32[4,4] reverse(b), dimensions={0}\n n = f32[4,4] cosine(t)", False),
    "an update by another value": ("u = f32[2,2] slice(w), slice={[0:2], [0:2]}\n n = f32[4,4] dynamic-update-slice(a, u, i, i)", True),
    "an update by a part of itself": ("u = f32[3,3] slice(a), slice={[0:3], [0:3]}\n n = f32[4,4] dynamic-update-slice(a, u, j, j)", False),
}


@pytest.mark.parametrize("how", KEPT)
def test_the_next_state_is_written_over_the_old_one_where_no_element_is_read_late(how: str) -> None:
    lines, in_place = KEPT[how]
    state = "(s32[], f32[4,4], f32[4,4])"
    model = check(loop(state, f"""
        a = f32[4,4] get-tuple-element(s), index=1
        w = f32[4,4] get-tuple-element(s), index=2
        {lines}
        ROOT r = (s32[], f32[4,4], f32[4,4]) tuple(j, n, w)""", """
        x = f32[4,4] parameter(0)
        y = f32[4,4] parameter(1)
        z = s32[] constant(0)
        t = (s32[], f32[4,4], f32[4,4]) tuple(z, x, y)""", n=2, result="""w = {state} while(t), condition=below, body=step
        ROOT g = f32[4,4] get-tuple-element(w), index=1"""), runs=1)
    copied = [s for s in steps_in(model.program.steps) if isinstance(s, Copy) and s.bytes == 64]
    assert (not copied) == in_place


def test_a_branch_does_not_write_over_a_state_that_is_read_behind_it() -> None:
    state = "(s32[], f32[4], f32[4])"
    text = loop(state, """
        a = f32[4] get-tuple-element(s), index=1
        b = f32[4] get-tuple-element(s), index=2
        c = ((f32[4], f32[4]), f32[4]) conditional(i, a, b), branch_computations={first, second}
        p = (f32[4], f32[4]) get-tuple-element(c), index=0
        n = f32[4] get-tuple-element(p), index=0
        d = f32[4] get-tuple-element(c), index=1
        m = f32[4] subtract(a, d)
        ROOT r = (s32[], f32[4], f32[4]) tuple(j, n, m)""", """
        x = f32[4] parameter(0)
        y = f32[4] parameter(1)
        z = s32[] constant(0)
        t = (s32[], f32[4], f32[4]) tuple(z, x, y)""", n=3)
    check(text.replace("step {", NESTED + "step {"), runs=1)


def test_updates_are_written_in_place() -> None:
    state = "(s32[], f32[6,8], f32[8])"
    model = check(loop(state, """
        a = f32[6,8] get-tuple-element(s), index=1
        v = f32[8] get-tuple-element(s), index=2
        w = f32[8] add(v, v)
        u = f32[1,8] reshape(w)
        zero = s32[] constant(0)
        d = f32[6,8] dynamic-update-slice(a, u, i, zero)
        ROOT r = (s32[], f32[6,8], f32[8]) tuple(j, d, w)""", """
        x = f32[8] parameter(0)
        z = s32[] constant(0)
        f = f32[] constant(0)
        big = f32[6,8] broadcast(f), dimensions={}
        t = (s32[], f32[6,8], f32[8]) tuple(z, big, x)""", n=6))
    assert not any(isinstance(s, Copy) and s.bytes > 100 for s in steps_in(model.program.steps))


def test_an_update_whose_operand_is_read_later_is_a_copy() -> None:
    check(entry("""
        x = f32[6,8] parameter(0)
        e = f32[6,8] exponential(x)
        u = f32[2,3] parameter(1)
        i = s32[] parameter(2)
        d = f32[6,8] dynamic-update-slice(e, u, i, i)
        ROOT r = f32[6,8] add(d, e)"""))


@pytest.mark.parametrize("at", [-3, 0, 2, 100])
def test_updates_and_slices_clamp(at: int) -> None:
    arrays = [np.arange(20, dtype=np.float32).reshape(4, 5), -np.ones((2, 2), np.float32), np.array(at, np.int32)]
    check(entry("""
        x = f32[4,5] parameter(0)
        u = f32[2,2] parameter(1)
        i = s32[] parameter(2)
        d = f32[4,5] dynamic-update-slice(x, u, i, i)
        s = f32[2,3] dynamic-slice(d, i, i), dynamic_slice_sizes={2,3}
        ROOT r = (f32[4,5], f32[2,3]) tuple(d, s)"""), arrays)


def test_what_a_loop_hands_on_unchanged_is_read_behind_it() -> None:
    """No pass has replaced the loop's part by what went in."""
    program = running.check(handing_on("""
        g = f32[4] get-tuple-element(w), index=1
        h = f32[4] get-tuple-element(w), index=2
        ROOT u = f32[4] subtract(h, g)"""))
    assert not any(isinstance(s, Copy) and s.source.name == "y" for s in program.steps)


def test_loops_nest() -> None:
    check(entry("""
        x = f32[3] parameter(0)
        z = s32[] constant(0)
        t = (s32[], f32[3]) tuple(z, x)
        w = (s32[], f32[3]) while(t), condition=outer_below, body=outer
        ROOT r = f32[3] get-tuple-element(w), index=1""", """
        inner_below { s = (s32[], f32[3]) parameter(0)
          i = s32[] get-tuple-element(s), index=0
          n = s32[] constant(3)
          ROOT r = pred[] compare(i, n), direction=LT }
        inner { s = (s32[], f32[3]) parameter(0)
          i = s32[] get-tuple-element(s), index=0
          v = f32[3] get-tuple-element(s), index=1
          one = s32[] constant(1)
          j = s32[] add(i, one)
          w = f32[3] sine(v)
          ROOT r = (s32[], f32[3]) tuple(j, w) }
        outer_below { s = (s32[], f32[3]) parameter(0)
          i = s32[] get-tuple-element(s), index=0
          n = s32[] constant(4)
          ROOT r = pred[] compare(i, n), direction=LT }
        outer { s = (s32[], f32[3]) parameter(0)
          i = s32[] get-tuple-element(s), index=0
          v = f32[3] get-tuple-element(s), index=1
          one = s32[] constant(1)
          j = s32[] add(i, one)
          z = s32[] constant(0)
          t = (s32[], f32[3]) tuple(z, v)
          w = (s32[], f32[3]) while(t), condition=inner_below, body=inner
          k = f32[3] get-tuple-element(w), index=1
          m = f32[3] add(k, v)
          ROOT r = (s32[], f32[3]) tuple(j, m) }
        """))


def test_a_loop_whose_state_is_no_tuple() -> None:
    check(entry("""
        x = f32[] parameter(0)
        ROOT w = f32[] while(x), condition=small, body=grow""", """
        small { s = f32[] parameter(0)
          n = f32[] constant(100)
          ROOT r = pred[] compare(s, n), direction=LT }
        grow { s = f32[] parameter(0)
          k = f32[] constant(10)
          ROOT r = f32[] add(s, k) }
        """))


BRANCHES = """
    first { p = (f32[4], f32[4]) parameter(0)
      a = f32[4] get-tuple-element(p), index=0
      b = f32[4] get-tuple-element(p), index=1
      c = f32[4] add(a, b)
      ROOT t = (f32[4], f32[4]) tuple(c, a) }
    second { p = f32[4] parameter(0)
      n = f32[4] negate(p)
      ROOT t = (f32[4], f32[4]) tuple(p, n) }
    third { p = () parameter(0)
      k = f32[] constant(9)
      c = f32[4] broadcast(k), dimensions={}
      ROOT t = (f32[4], f32[4]) tuple(c, c) }
"""


@pytest.mark.parametrize("chosen", [-7, 0, 1, 2, 9])
def test_a_branch_out_of_range_is_the_last(chosen: int) -> None:
    rng = np.random.default_rng(0)
    arrays = [np.array(chosen, np.int32), rng.standard_normal(4).astype(np.float32), rng.standard_normal(4).astype(np.float32)]
    check(entry("""
        i = s32[] parameter(0)
        x = f32[4] parameter(1)
        y = f32[4] parameter(2)
        t = (f32[4], f32[4]) tuple(x, y)
        e = () tuple()
        c = (f32[4], f32[4]) conditional(i, t, y, e), branch_computations={first, second, third}
        a = f32[4] get-tuple-element(c), index=0
        b = f32[4] get-tuple-element(c), index=1
        ROOT r = (f32[4], f32[4]) tuple(a, b)""", BRANCHES), arrays)


@pytest.mark.parametrize("truth", [True, False])
def test_a_branch_by_a_truth_value(truth: bool) -> None:
    check(entry("""
        i = pred[] parameter(0)
        x = f32[3] parameter(1)
        ROOT c = f32[3] conditional(i, x, x), true_computation=yes, false_computation=no""",
        "yes { p = f32[3] parameter(0)\n ROOT r = f32[3] exponential(p) }\nno { p = f32[3] parameter(0)\n ROOT r = f32[3] negate(p) }\n"),
        [np.array(truth), np.array([1, 2, 3], np.float32)])


@pytest.mark.parametrize("dtype", ["pred", "s32"])
def test_a_branch_by_an_element_of_an_array(dtype: str) -> None:
    ways = "true_computation=yes, false_computation=no" if dtype == "pred" else "branch_computations={no, yes}"
    text = entry(f"""
        i = {dtype}[4] parameter(0)
        x = f32[3] parameter(1)
        q = {dtype}[1] slice(i), slice={{[2:3]}}
        v = {dtype}[] reshape(q)
        ROOT c = f32[3] conditional(v, x, x), {ways}""",
        "yes { p = f32[3] parameter(0)\n ROOT r = f32[3] exponential(p) }\nno { p = f32[3] parameter(0)\n ROOT r = f32[3] negate(p) }\n")
    for truth in (0, 1):
        flags = np.array([1 - truth, 1 - truth, truth, 1 - truth])
        check(text, [flags.astype(bool if dtype == "pred" else np.int32), np.array([1, 2, 3], np.float32)], runs=1)


@pytest.mark.parametrize("chosen", [0, 1])
def test_parts_of_a_branch_that_are_read_under_several_names(chosen: int) -> None:
    """Tuples in tuples, as lowering finds them where no pass has merged equal parts."""
    module = module_of(entry("""
        i = s32[] parameter(0)
        x = f32[4] parameter(1)
        c = ((f32[4], f32[4]), f32[4]) conditional(i, x, x), branch_computations={first, second}
        p = (f32[4], f32[4]) get-tuple-element(c), index=0
        a = f32[4] get-tuple-element(p), index=0
        b = f32[4] get-tuple-element(p), index=0
        d = f32[4] get-tuple-element(c), index=1
        s = f32[4] subtract(b, d)
        ROOT r = (f32[4], f32[4], f32[4]) tuple(s, a, d)""", NESTED))
    arrays = [np.array(chosen, np.int32), *inputs_of(module)[1:]]
    for got, wanted in zip(interpret_program(lower(module), arrays), reference(module, arrays), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_a_branch_is_the_result_of_a_program() -> None:
    check(entry("""
        i = pred[] parameter(0)
        x = f32[3] parameter(1)
        ROOT c = (f32[3], f32[3]) conditional(i, x, x), true_computation=yes, false_computation=no""", """
        yes { p = f32[3] parameter(0)
          q = f32[3] exponential(p)
          ROOT r = (f32[3], f32[3]) tuple(p, q) }
        no { p = f32[3] parameter(0)
          k = f32[] constant(2)
          l = f32[3] broadcast(k), dimensions={}
          ROOT r = (f32[3], f32[3]) tuple(l, p) }
        """))
