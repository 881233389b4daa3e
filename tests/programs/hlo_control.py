"""HLO steps: loops with counters and exits that depend on data, branches, calls, one inside the other."""
from __future__ import annotations

from dataclasses import replace

from tests.programs.hlo import STEPS, Hlo, commas, type_of
from tests.programs.maker import Misfit, arithmetic, exact, real
from tests.programs.numbers import INTEGERS, NARROW, ends, is_complex, joined, rounded
from tests.programs.program import Statement, Value

INSIDE = ("binary", "unary", "integer", "integer_unary", "choose", "limit", "reduce", "transpose", "reverse", "concatenate", "slice", "pad",
          "broadcast", "loop", "branch", "call")
"""The steps of bodies."""
DEPTH = 1_000_000
"""Names of values count from a thousand times as high in each body: two levels of control flow inside each other are enough."""


def state(maker: Hlo) -> Value:
    """A value that a loop may carry: whole numbers within bounds that the body can keep."""
    value = maker.pick(lambda v: exact(v) and arithmetic(v) and not is_complex(v.dtype) and not v.dtype.startswith("f8"))
    if real(value):
        value = maker.limited(value, -2, 2) if value.most > 2 else value
        if value.grain < 1:
            value = maker.add(rounded(value), f"floor({value.name})")
        value = replace(value, low=-2, high=2)
    return value


def body(maker: Hlo, inner: Hlo, value: Value, others: list[Value]) -> Value:
    """A few steps inside, and then a value like the first that keeps its bounds."""
    if maker.count > DEPTH:
        raise Misfit
    inner.run(maker.draws.between(0, 4), INSIDE)
    fitting = [v for v in inner.values if (v.dtype, v.shape) == (value.dtype, value.shape) and exact(v)]
    made = maker.draws.late(fitting)
    if made is value or made in others:
        other = maker.draws.late(fitting)
        made = inner.add(replace(made, low=-8, high=8), f"{maker.draws.one(('add', 'subtract', 'maximum'))}({made.name}, {other.name})") \
            if made.most <= 4 or not real(made) else made
    if real(value):
        made = inner.limited(made, value.low, value.high)
        if made.grain < 1:
            made = inner.add(rounded(made), f"floor({made.name})")
    return within_type(made)


def within_type(value: Value) -> Value:
    """What is known of a value that a body gives, whatever the body does to integers: they wrap."""
    if value.dtype not in INTEGERS:
        return value
    low, high = ends(value.dtype)
    return replace(value, low=low, high=high)


@STEPS(1.2, "control")
def loop(maker: Hlo) -> None:
    """``while`` with a counter, and sometimes an exit as soon as the data say so."""
    value = state(maker)
    fixed = maker.alike(value)
    counter = maker.constant("s32", 0)
    start = maker.name()
    state_type = f"(s32[], {type_of(value)}, {type_of(fixed)})"
    maker.statements.append(Statement(f"{start} = {state_type} tuple({counter.name}, {value.name}, {fixed.name})"))

    inner, (i, x, y) = maker.inner([replace(counter, low=0, high=9), value, fixed])
    made = body(maker, inner, x, [y])
    one = inner.constant("s32", 1)
    after = inner.add(i, f"add({i.name}, {one.name})")
    if inner.inputs:
        raise Misfit
    lines = [f"s = {state_type} parameter(0)", *(f"{v.name} = {type_of(v)} get-tuple-element(s), index={n}" for n, v in enumerate((i, x, y)))]
    lines += [s.text for s in inner.statements]
    lines.append(f"ROOT r = {state_type} tuple({after.name}, {made.name}, {y.name})")
    step = maker.helper("{\n  " + "\n  ".join(lines) + "\n}")

    trips = maker.draws.one((0, 1, 2, 3, 5))
    lines = [f"s = {state_type} parameter(0)", "i = s32[] get-tuple-element(s), index=0", f"n = s32[] constant({trips})",
             "more = pred[] compare(i, n), direction=LT"]
    if maker.draws.chance(0.4):
        t = value.dtype
        most = maker.reducer(t, "maximum")
        lines += [f"x = {type_of(value)} get-tuple-element(s), index=1", f"low = {t}[] constant({0 if t[0] == 'u' else -2})",
                  f"m = {t}[] reduce(x, low), dimensions={{{commas(range(len(value.shape)))}}}, to_apply={most}",
                  f"top = {t}[] constant({maker.draws.one((0, 1, 2, 50))})", "small = pred[] compare(m, top), direction=LE",
                  "ROOT r = pred[] and(more, small)"]
        if value.size_one():
            raise Misfit  # a reduction of one element with an initial value that is no identity
    else:
        lines.append("ROOT r = pred[] copy(more)")
    condition = maker.helper("{\n  " + "\n  ".join(lines) + "\n}")
    end = maker.name()
    maker.statements.append(Statement(f"{end} = {state_type} while({start}), condition={condition}, body={step}"))
    maker.add(within_type(value), f"get-tuple-element({end}), index=1")
    if maker.draws.chance(0.3):
        maker.add(replace(counter, low=0, high=9), f"get-tuple-element({end}), index=0")


@STEPS(1.2, "control")
def branch(maker: Hlo) -> None:
    """``conditional`` by a predicate or by an index, which may be out of bounds."""
    value = state(maker)
    other = maker.alike(value)
    count = maker.draws.one((2, 2, 3))
    names, results = [], []
    for _ in range(count):
        inner, values = maker.inner([value, other])
        made = body(maker, inner, values[0], [values[1]])
        if inner.inputs:
            raise Misfit
        lines = [f"s = ({type_of(value)}, {type_of(other)}) parameter(0)",
                 *(f"{v.name} = {type_of(v)} get-tuple-element(s), index={n}" for n, v in enumerate(values)),
                 *(s.text for s in inner.statements), f"ROOT r = {type_of(value)} copy({made.name})"]
        names.append(maker.helper("{\n  " + "\n  ".join(lines) + "\n}"))
        results.append(made)
    both = maker.name()
    maker.statements.append(Statement(f"{both} = ({type_of(value)}, {type_of(other)}) tuple({value.name}, {other.name})"))
    given = ", ".join([both] * count)
    result = joined([replace(r, name="") for r in results]) or within_type(value)
    if count == 2 and maker.draws.chance(0.6):
        which = maker.input("pred", ())
        maker.add(result, f"conditional({which.name}, {given}), true_computation={names[0]}, false_computation={names[1]}")
    else:
        which = maker.input("s32", (), -1, count)
        maker.add(result, f"conditional({which.name}, {given}), branch_computations={{{', '.join(names)}}}")


@STEPS(0.5, "control")
def call(maker: Hlo) -> None:
    """A computation that is called, once or twice."""
    value = state(maker)
    other = maker.alike(value)
    inner, values = maker.inner([value, other])
    made = body(maker, inner, values[0], [values[1]])
    name = maker.close(inner, values, [made])
    result = maker.add(replace(made, name=""), f"call({value.name}, {other.name}), to_apply={name}")
    if maker.draws.chance(0.4):
        bounds = replace(made, name="") if made.dtype in INTEGERS else replace(made, name="", low=value.low, high=value.high)
        maker.add(bounds, f"call({result.name}, {value.name}), to_apply={name}" if result.dtype not in NARROW or result.most <= 2 else
                  f"call({other.name}, {value.name}), to_apply={name}")
