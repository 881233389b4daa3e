"""Shapes that are known before the program runs are written as attributes; what becomes known makes more known."""
from __future__ import annotations

from math import prod
from random import Random

import numpy as np
import pytest

import irscope
from irscope.graph import Module
from irscope.passes import pass_named
from irscope.passes.early_values import EarlyValues
from irscope.passes.manager import run_passes
from tests.passes.relay_runs import meaning_stays

X = "%x: Tensor[(2, 4), float32]"


def static(signature: str, body: str) -> tuple[Module, tuple[str, ...]]:
    """The module after the pass, without what is dead; types hold and the numbers stay."""
    reading = irscope.load(f"def @main({signature}) {{\n{body}\n}}\n")
    assert reading.ok, [f.message for f in reading.findings]
    module = reading.module()
    first, *_, last = run_passes(module, ["dynamic-to-static", "remove-dead"])
    assert not last.broke, [f.message for f in last.broke]
    meaning_stays(module, last.after, 1e-5, 1e-5)
    return last.after, tuple(text for step in (first, last) for text in step.declined)


def names(module: Module) -> list[str]:
    return [n.op.name for n in module.main().nodes if n.op.name not in ("parameter", "constant")]


@pytest.mark.parametrize(("signature", "line", "made", "attrs"), [
    (X, "dyn.reshape(%x, [4, 2])", "reshape", {"newshape": [4, 2]}),
    (X, "dyn.broadcast_to(%x, [3, 2, 4])", "broadcast_to", {"shape": [3, 2, 4]}),
    (X, "dyn.tile(%x, [2, 1])", "tile", {"reps": [2, 1]}),
    ("", 'dyn.zeros([2, 3], dtype="float32")', "zeros", {"shape": [2, 3], "dtype": "float32"}),
    ("", 'dyn.ones([4], dtype="int32")', "ones", {"shape": [4]}),
    ("", "dyn.full(2f, [2, 2])", "full", {"shape": [2, 2]}),
    (X, "dyn.expand_dims(%x, 1)", "expand_dims", {"axis": 1}),
    ("%x: Tensor[(2, 1, 4), float32]", "dyn.squeeze(%x, [1])", "squeeze", {"axis": [1]}),
    (X, 'dyn.topk(%x, 2, ret_type="values")', "topk", {"k": 2, "ret_type": "values"}),
    ("%x: Tensor[(3), int32]", 'dyn.one_hot(%x, 1f, 0f, 4, dtype="float32")', "one_hot", {"depth": 4}),
    (X, "dyn.strided_slice(%x, [0, 1], [2, 4], [1, 2])", "strided_slice", {"begin": [0, 1], "end": [2, 4], "strides": [1, 2]}),
    (X, "dyn.nn.pad(%x, [[0, 1], [2, 0]], 1f)", "nn.pad", {"pad_width": [[0, 1], [2, 0]]}),
    ("%x: Tensor[(1, 2, 3, 3), float32]", "dyn.nn.upsampling(%x, 2f, 2f)", "nn.upsampling", {"scale_h": 2.0, "scale_w": 2.0}),
    ("%x: Tensor[(1, 2, 3, 3), float32]", "dyn.image.resize2d(%x, [6, 6], [0.0, 0.0, 0.0, 0.0])", "image.resize2d", {"size": [6, 6]}),
])
def test_constants_become_attributes(signature: str, line: str, made: str, attrs: dict[str, object]) -> None:
    module, declined = static(signature, "  " + line)
    result = module.main().result()
    assert result.op.name == made and {key: result.attrs[key] for key in attrs} == attrs and not declined


def test_a_value_is_known_through_all_that_it_is_computed_from() -> None:
    text = (f"def @main({X}, %y: Tensor[(8, 1), float32], %z: Tensor[(2), int64]) {{\n  %0 = shape_of(%y);\n  %1 = split(%0, indices_or_sections=2);\n"
            "  %2 = concatenate((divide(%1.0, [2]), [2]));\n  %3 = dyn.reshape(%x, %2);\n  (multiply(%2, %2), %3, %z)\n}\n")
    [made, _, given] = irscope.load(text).module().main().result().operands
    known = EarlyValues()
    assert np.asarray(known.of(made)).tolist() == [16, 4] and known.of(given) is None


def test_shapes_that_types_tell_are_known_one_after_the_other() -> None:
    module, _ = static(f"{X}, %y: Tensor[(8, 1), float32]",
                       "  %0 = dyn.reshape(%x, shape_of(%y));\n  %1 = shape_of(%0);\n  %2 = split(%1, indices_or_sections=2);\n"
                       "  %3 = concatenate((divide(%2.0, [2]), [2]));\n  %4 = dyn.reshape(%0, %3);\n  tanh(%4)")
    assert names(module) == ["reshape", "reshape", "tanh"]
    assert [n.attrs["newshape"] for n in module.main().nodes if n.op.name == "reshape"] == [[8, 1], [4, 2]]


def test_what_data_decides_stays_and_is_told() -> None:
    module = irscope.load(f"def @main({X}, %s: Tensor[(2), int32]) {{\n  %0 = dyn.reshape(%x, %s);\n  tanh(%0)\n}}\n").module()
    making = pass_named("dynamic-to-static")
    made = making.run(module)
    assert names(made) == ["dyn.reshape", "tanh"] and making.declined == ["left %0: its newshape is not known before the program runs"]


def program(seed: int) -> str:
    """Random movement by shapes that are constants, or computed from those of other values."""
    random = Random(seed)
    lines = ["  %0 = tanh(%x);"]
    values: list[tuple[str, tuple[int, ...]]] = [("%x", (2, 4)), ("%0", (2, 4))]

    def line(text: str) -> str:
        lines.append(f"  %{len(lines)} = {text};")
        return f"%{len(lines) - 1}"

    while len(lines) < 14:
        name, shape = random.choice(values[-3:])
        size = prod(shape)
        match random.choice(["reshape", "like", "half", "tile", "expand", "slice", "add"]):
            case "reshape":
                values.append((line(f"dyn.reshape({name}, [{size}])"), (size,)))
            case "like":
                other, wanted = random.choice([v for v in values if prod(v[1]) == size])
                values.append((line(f"dyn.reshape({name}, {line(f'shape_of({other})')})"), wanted))
            case "half" if shape[0] % 2 == 0:
                first = line(f"strided_slice({line(f'shape_of({name})')}, begin=[0], end=[1], strides=[1])")
                made = line(f"concatenate(({line(f'divide({first}, [2])')}, [2, -1]))")
                values.append((line(f"dyn.reshape({name}, {made})"), (shape[0] // 2, 2, size // shape[0])))
            case "tile" if size < 64:
                values.append((line(f"dyn.tile({name}, {[2] + [1] * (len(shape) - 1)})"), (shape[0] * 2, *shape[1:])))
            case "expand" if len(shape) < 4:
                values.append((line(f"dyn.expand_dims({name}, 0)"), (1, *shape)))
            case "slice" if shape[-1] > 2:
                begin, end = [0] * len(shape), [*shape[:-1], shape[-1] - 1]
                values.append((line(f"dyn.strided_slice({name}, {begin}, {end}, {[1] * len(shape)})"), (*shape[:-1], shape[-1] - 1)))
            case _:
                values.append((line(f"add({name}, 1f)"), shape))
    return f"def @main({X}) {{\n" + "\n".join(lines) + f"\n  ({values[-1][0]}, {values[-2][0]})\n}}\n"


@pytest.mark.parametrize("seed", range(12))
def test_random_movement_keeps_its_numbers_and_is_static_afterwards(seed: int) -> None:
    module = irscope.load(program(seed)).module()
    *_, last = run_passes(module, ["dynamic-to-static"])
    assert not last.broke, [f.message for f in last.broke]
    assert not any(name.startswith("dyn.") for name in names(last.after))
    meaning_stays(module, last.after)
