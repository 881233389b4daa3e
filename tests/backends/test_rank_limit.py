"""Arrays of more dimensions than numpy has are refused by name, before anything is drawn or compiled; those below run."""
from __future__ import annotations

import pytest

import irscope
from irscope.api import RunOptions
from irscope.ops.attributes import Constant
from irscope.source import UserError
from tests.ops.running import read


def dims(rank: int) -> str:
    return ",".join("1" * rank)


@pytest.mark.parametrize("text", [
    f"ENTRY m {{ x = f32[{dims(61)}] parameter(0)\n ROOT r = f32[{dims(61)}] negate(x) }}",
    f"ENTRY m {{ y = f32[] parameter(0)\n x = f32[{dims(70)}] broadcast(y), dimensions={{}}\n ROOT r = f32[1] reshape(x) }}",
    f"ENTRY m {{ x = f32[{dims(70)}] constant({{...}})\n ROOT r = f32[1] reshape(x) }}",
])
@pytest.mark.parametrize("engine", ["llvm", "reference"])
def test_too_many_dimensions(text: str, engine: str) -> None:
    with pytest.raises(UserError) as fault:
        irscope.api.run(text, RunOptions(engine=engine, check=True, fill_elided=True))
    assert "%x (" in fault.value.findings[0].message and "at most 60 dimensions" in fault.value.findings[0].message


def test_a_constant_of_too_many_dimensions_is_refused_by_its_type() -> None:
    type = f"f32[{dims(65)}]"
    text = f"ENTRY m {{ x = {type} constant({'{' * 65}2{'}' * 65})\n n = {type} negate(x)\n ROOT r = f32[1] reshape(n) }}"
    constant = read(text).main().nodes[0]
    with pytest.raises(UserError, match="more than 64 dimensions"):
        Constant.of(constant).literal.value()


@pytest.mark.parametrize("text", [
    f"ENTRY m {{ x = f32[{dims(60)}] parameter(0)\n y = c64[{dims(60)}] complex(x, x)\n ROOT z = f32[{dims(60)}] imag(y) }}",
    f"ENTRY m {{ x = s32[{dims(60)}] parameter(0)\n ROOT z = s32[{dims(60)}] power(x, x) }}",
    f"f {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] subtract(a, b) }}\nENTRY m {{ x = f32[{dims(60)}] parameter(0)\n "
    f"i = f32[] constant(1)\n ROOT z = f32[{dims(59)}] reduce(x, i), dimensions={{7}}, to_apply=f }}",
])
def test_as_many_dimensions_as_numpy_has_room_for(text: str) -> None:
    assert irscope.api.run(text, RunOptions(check=True, no_cache=True, threads=1)).ok
