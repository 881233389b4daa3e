"""Several devices in one program: collectives give what XLA gave on four devices, loops run in step, and devices that are not there are told."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import irscope
from irscope.analysis.reference import evaluate, flatten
from irscope.cli.main import group
from irscope.expand import expand
from irscope.expand.partitions import partitioned
from irscope.source import UserError

DATA = Path(__file__).resolve().parent.parent / "data" / "spmd"

COLLECTIVES = """HloModule m, num_partitions=4
add { x = f32[] parameter(0)
      y = f32[] parameter(1)
      ROOT s = f32[] add(x, y) }
half { x = f32[] parameter(0)
       y = f32[] parameter(1)
       d = f32[] subtract(x, y)
       ROOT s = f32[] abs(d) }
"""


def devices(body: str, arrays: list[np.ndarray], count: int = 4) -> list[np.ndarray]:
    """What each device gets, when device d is given arrays[d]."""
    module = irscope.load(COLLECTIVES + "ENTRY e {\n  p = f32[4,2] parameter(0)\n" + body + "\n}\n").module()
    made = expand(partitioned(module, count))
    return [np.asarray(a) for a in flatten(evaluate(made.main(), arrays))]


@pytest.fixture
def given() -> list[np.ndarray]:
    return list(np.arange(32, dtype=np.float32).reshape(4, 4, 2))


def test_what_xla_gave_on_a_mesh_of_two_by_two() -> None:
    run = CliRunner().invoke(group, ["compile-and-run", str(DATA / "mesh_2x2.opt.hlo"), "--partitions", "4", "--check",
                                     "--inputs", str(DATA / "mesh_2x2.inputs.npz"), "--expect", str(DATA / "mesh_2x2.outputs.npz")])
    assert run.exit_code == 0, run.output


@pytest.mark.parametrize(("body", "want"), [
    ("ROOT r = f32[4,2] all-reduce(p), to_apply=add", lambda a: [np.sum(a, axis=0)] * 4),
    ("ROOT r = f32[4,2] all-reduce(p), to_apply=add, replica_groups={{0,2},{1,3}}", lambda a: [a[0] + a[2], a[1] + a[3]] * 2),
    ("ROOT r = f32[4,2] all-reduce(p), to_apply=half, replica_groups={{0,1}}", lambda a: [abs(a[0] - a[1])] * 2 + [a[2], a[3]]),
    ("ROOT r = f32[8,2] all-gather(p), dimensions={0}, replica_groups={{1,0},{2,3}}",
     lambda a: [np.concatenate([a[1], a[0]])] * 2 + [np.concatenate([a[2], a[3]])] * 2),
    ("ROOT r = f32[1,2] reduce-scatter(p), dimensions={0}, to_apply=add", lambda a: [np.sum(a, axis=0)[i:i + 1] for i in range(4)]),
    ("ROOT r = f32[4,2] all-to-all(p), dimensions={0}", lambda a: [np.stack([x[i] for x in a]) for i in range(4)]),
    ("ROOT r = f32[4,2] collective-permute(p), source_target_pairs={{0,1},{1,2},{3,0}}", lambda a: [a[3], a[0], a[1], 0 * a[3]]),
    ("ROOT r = f32[4,2] collective-broadcast(p), replica_groups={{2,0},{1,3}}", lambda a: [a[2], a[1], a[2], a[1]]),
])
def test_each_collective(given: list[np.ndarray], body: str, want: object) -> None:
    assert callable(want)
    for got, expected in zip(devices(body, given), want(given), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_a_device_knows_its_number(given: list[np.ndarray]) -> None:
    assert [int(a) for a in devices("ROOT i = u32[] partition-id()", given)] == [0, 1, 2, 3]


LOOPS = COLLECTIVES + """few { s = (s32[], f32[2]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      n = s32[] constant(3)
      ROOT c = pred[] compare(i, n), direction=LT }
alone { s = (s32[], f32[2]) parameter(0)
        i = s32[] get-tuple-element(s), index=0
        one = s32[] constant(1)
        j = s32[] add(i, one)
        x = f32[2] get-tuple-element(s), index=1
        y = f32[2] multiply(x, x)
        ROOT t = (s32[], f32[2]) tuple(j, y) }
together { s = (s32[], f32[2]) parameter(0)
           i = s32[] get-tuple-element(s), index=0
           one = s32[] constant(1)
           j = s32[] add(i, one)
           x = f32[2] get-tuple-element(s), index=1
           y = f32[2] all-reduce(x), to_apply=add
           ROOT t = (s32[], f32[2]) tuple(j, y) }
ENTRY e { p = f32[2] parameter(0)
          z = s32[] constant(0)
          a = (s32[], f32[2]) tuple(z, p)
          b = (s32[], f32[2]) while(a), condition=few, body=alone
          c = f32[2] get-tuple-element(b), index=1
          d = (s32[], f32[2]) tuple(z, c)
          f = (s32[], f32[2]) while(d), condition=few, body=together
          ROOT r = f32[2] get-tuple-element(f), index=1 }
"""


def test_bodies_that_do_not_communicate_are_shared_by_the_devices() -> None:
    whole = irscope.load(LOOPS).module()
    made = partitioned(whole, 2)
    assert "alone" in made.graphs and "together" not in made.graphs
    loops = [node for node in made.main().nodes if node.op.name == "while"]
    assert [loop.bodies[1].name for loop in loops] == ["alone", "alone", "together.2"], "one loop a device, then one of all in step"
    given = [np.array([1, 0.5], np.float32), np.array([-1, 1], np.float32)]
    for got in flatten(evaluate(expand(made).main(), given)):
        np.testing.assert_allclose(got, 4 * (given[0] ** 8 + given[1] ** 8), rtol=1e-6)


def test_devices_that_are_not_there_are_told(given: list[np.ndarray]) -> None:
    with pytest.raises(UserError, match="names device 3, but there are 2 partitions"):
        devices("ROOT r = f32[4,2] all-reduce(p), to_apply=add, replica_groups={{0,3}}", given[:2], 2)


def test_groups_of_several_sizes_are_told(given: list[np.ndarray]) -> None:
    with pytest.raises(UserError, match="%r, run by 4 devices: operands of add disagree on shape"):
        devices("s = f32[2,2] reduce-scatter(p), dimensions={0}, to_apply=add, replica_groups={{0,1},{2},{3}}\n"
                "  ROOT r = f32[2,2] all-reduce(s), to_apply=add", given)


def test_what_is_not_simulated_is_refused(given: list[np.ndarray]) -> None:
    with pytest.raises(UserError, match="does not simulate"):
        devices("t = token[] after-all()\n  ROOT o = token[] outfeed(p, t)", given)
