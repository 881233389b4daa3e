"""Lines of TorchScript that would make numbers of a billion digits, or lists that fill the memory, are refused before they do."""
from __future__ import annotations

import pytest

import irscope
from irscope.expand import expand
from irscope.expand.torchscript.plain_sizes import require_plain
from irscope.ops.faults import TypeFault
from irscope.source import UserError
from irscope.source.budget import BudgetExceeded

HEAD = 'graph(%x : Float(2, strides=[1])):\n  %a : int = prim::Constant[value=99999999999]()\n  %s : str = prim::Constant[value="a"]()\n'
TAIL = "  %y : Float(2) = aten::mul(%x, %n)\n  return (%y)\n"
LEN = "  %n : int = aten::len(%b)\n"


def doubled(start: str, kind: str, name: str, last: str) -> str:
    return f"  %l0 : {kind} = {start}\n" + "".join(f"  %l{i} : {kind} = {name}(%l{i - 1}, %l{i - 1})\n" for i in range(1, 60)) + last


def constant(text: str) -> str:
    return f'  %t : str = prim::Constant[value="{text}"]()\n'


@pytest.mark.parametrize(("lines", "said"), [
    ("  %n : int = aten::pow(%a, %a)\n", "has more than 64 bits"),
    ("  %n : int = aten::factorial(%a)\n", "has more than 64 bits"),
    ("  %n : int = aten::__lshift__(%a, %a)\n", "cannot be shifted by 99999999999"),
    (doubled("prim::Constant[value=99]()", "int", "aten::mul", "  %n : int = aten::neg(%l59)\n"), "torch's int has 64 bits"),
    ("  %l : int[] = prim::ListConstruct(%a)\n  %b : int[] = aten::mul(%l, %a)\n" + LEN, "more than 2,000,000 elements"),
    ("  %l : int[] = prim::ListConstruct(%a)\n  %b : int[] = aten::mul(%a, %l)\n" + LEN, "more than 2,000,000 elements"),
    ("  %b : str = aten::mul(%s, %a)\n" + LEN, "more than 2,000,000 elements"),
    ("  %b : str = aten::rjust(%s, %a, %s)\n" + LEN, "more than 2,000,000 elements"),
    ("  %b : str = aten::zfill(%s, %a)\n" + LEN, "more than 2,000,000 elements"),
    (constant("%99999999999d") + "  %b : str = aten::percentFormat(%t, %a)\n" + LEN, "more than 2,000,000 elements"),
    (constant("%*d") + "  %b : str = aten::percentFormat(%t, %a, %a)\n" + LEN, "more than 2,000,000 elements"),
    (constant("{} {}") + "  %b : str = aten::format(%t, %a)\n" + LEN, "too few values"),
    (constant("a" * 3000) + "  %b : str = aten::replace(%t, %s, %t)\n" + LEN, "more than 2,000,000 elements"),
    (doubled("prim::ListConstruct(%a)", "int[]", "aten::add", "  %n : int = aten::len(%l59)\n"), "more than 2,000,000 elements"),
    (doubled('prim::Constant[value="a"]()', "str", "aten::add", "  %n : int = aten::len(%l59)\n"), "more than 2,000,000 elements"),
])
def test_large_plain_values_are_refused(lines: str, said: str) -> None:
    with pytest.raises(UserError) as told:
        expand(irscope.load(HEAD + lines + TAIL).module())
    assert said in told.value.render()


@pytest.mark.parametrize("lines", [
    "  %k : int = prim::Constant[value=3]()\n  %n : int = aten::pow(%k, %k)\n", "  %n : int = aten::mul(%k, %k)\n",
    "  %l : int[] = prim::ListConstruct(%a)\n  %b : int[] = aten::mul(%l, %k)\n" + LEN, "  %b : str = aten::rjust(%s, %k, %s)\n" + LEN,
    "  %n : int = aten::__lshift__(%k, %k)\n", "  %n : int = aten::factorial(%k)\n", constant("{0.real:>99999999999} {}") + "  %b : str = aten::format(%t, %a)\n" + LEN,
    constant("abca") + "  %m : int = prim::Constant[value=1]()\n  %b : str = aten::replace(%t, %s, %t, %m)\n" + LEN,
    "  %b : int = aten::neg(%a)\n  %n : int = aten::neg(%b)\n",
])
def test_small_ones_are_computed(lines: str) -> None:
    three = "" if "%k : int" in lines else "  %k : int = prim::Constant[value=3]()\n"
    made = expand(irscope.load(HEAD + three + lines + TAIL).module()).main()
    assert {node.op.name for node in made.nodes} <= {"parameter", "constant", "broadcast", "multiply", "convert"}


@pytest.mark.parametrize(("name", "values", "fits"), [
    ("aten::replace", ["a" * 3000, "a", "b" * 3000], False),
    ("aten::replace", ["a" * 3000, "a", "b" * 3000, -1], False),
    ("aten::replace", ["a" * 3000, "a", "b", -1], True),
    ("aten::join", ["b" * 2000, ["a"] * 2000], False),
    ("aten::join", ["b", ["a" * 1000, "a"] * 2000], False),
    ("aten::join", ["b", ["a"] * 2000], True),
    ("aten::add", ["a" * 1_500_000, "b" * 1_500_000], False),
    ("aten::add", ["a" * 1_500_000, "b"], True),
    ("aten::mul", [[1] * 2000, 2000], False),
    ("aten::mul", [2000, "a" * 2000], False),
    ("aten::mul", [2000, 2000], True),
    ("aten::pow", [2, 64], True),
    ("aten::pow", [2, 65], False),
    ("aten::pow", [-1, 1 << 60], True),
    ("aten::pow", [2.0, 1 << 60], True),
    ("aten::__lshift__", [1, 63], True),
    ("aten::__lshift__", [1, 64], False),
    ("aten::factorial", [20], True),
    ("aten::factorial", [21], False),
    ("aten::zfill", ["1", 3_000_000], False),
    ("aten::percentFormat", ["%5d", 1], True),
    ("aten::percentFormat", ["%1000000d", 1], False),
    ("aten::percentFormat", ["%*d", 1, 1], False),
])
def test_a_result_is_bounded_before_it_is_made(name: str, values: list[object], fits: bool) -> None:
    if fits:
        require_plain(name, values)
        return
    with pytest.raises((TypeFault, BudgetExceeded)):
        require_plain(name, values)
