"""jax's shard_map, as lowered: on simulated devices it gives the arrays that XLA gave on eight, in Shardy's form and in the older one."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irscope
from irscope.expand.manual import Shards, shards_of
from irscope.source import UserError
from tests.conftest import Cli

DATA = Path(__file__).resolve().parent.parent / "data" / "spmd"
MESH = 'HloModule m, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=2, "b"=2]>, turned = #sdy.mesh<["x"=4], device_ids=[3,2,1,0]>}}\n'


@pytest.mark.parametrize("form", ["", "_gspmd"])
@pytest.mark.parametrize("name", ["matmul", "axes", "auto"])
def test_what_xla_gave_on_eight_devices(name: str, form: str, cli: Cli) -> None:
    run = cli("compile-and-run", DATA / f"shard_map_{name}{form}.pre.hlo", "--partitions", 8, "--check",
              "--inputs", DATA / f"shard_map_{name}.inputs.npz", "--expect", DATA / f"shard_map_{name}.outputs.npz")
    assert run.exit_code == 0, run.output
    assert "agrees with the reference and what is expected" in run.output


def test_one_device_alone_is_told_how_many_there_are(cli: Cli) -> None:
    for form in ("", "_gspmd"):
        run = cli("compile-and-run", DATA / f"shard_map_matmul{form}.pre.hlo")
        assert run.exit_code == 2
        assert "cannot run here: it cuts arrays into the shards of 8 devices" in run.stderr
        assert "help: --partitions 8 runs the program on 8 simulated devices" in run.stderr
        assert "shard_map_matmul" in run.stderr.split("error")[0]


def test_another_number_of_devices_is_refused(cli: Cli) -> None:
    run = cli("compile-and-run", DATA / "shard_map_axes.pre.hlo", "--partitions", 4)
    assert run.exit_code == 2
    assert "is written for 8 devices, but there are 4 partitions" in run.stderr and "--partitions 8" in run.stderr


def boundary(sharding: str, axes: str = '"a", "b"') -> list[Shards]:
    quoted = sharding.replace('"', '\\"')
    by_hand = axes.replace('"', '\\"')
    module = irscope.load(
        MESH + "ENTRY e {\n  x = f32[8,8] parameter(0)\n"
        '  ROOT s = f32[4,8] custom-call(x), custom_call_target="xla.sdy.GlobalToLocalShape", frontend_attributes={'
        f'xla.sdy.in_shardings="#sdy.sharding_per_value<[{quoted}]>",xla.sdy.manual_axes="#sdy<manual_axes{{{by_hand}}}>"}}\n}}\n').module()
    return shards_of(module, module.main().result())


def test_shardings_are_read() -> None:
    assert boundary('<@mesh, [{"b"}, {}]>') == [Shards((2, 1), ((0, 0), (1, 0), (0, 0), (1, 0)))]
    assert boundary('<@mesh, [{"b", "a", ?}p1, {}], replicated={"c"}>') == [Shards((4, 1), ((0, 0), (2, 0), (1, 0), (3, 0)))]
    assert boundary('<@turned, [{}, {"x"}]>', '"x"') == [Shards((1, 4), ((0, 3), (0, 2), (0, 1), (0, 0)))]
    assert boundary('<mesh<["k"=2]>, [{"k"}, {?}]>', '"k"') == [Shards((2, 1), ((0, 0), (1, 0)))]
    # Of axes that are left to the compiler every device holds the whole.
    assert boundary('<@mesh, [{"b"}, {"a"}]>', '"a"') == [Shards((1, 2), ((0, 0), (0, 0), (0, 1), (0, 1)))]


@pytest.mark.parametrize("sharding", ['<@mesh, [{"a":(1)2}, {}]>', '<@missing, [{"a"}, {}]>', '<@mesh, [{"a"}]>', '<@mesh, [{"q"}, {}]>', "none",
                                      '<mesh<["a"=2], device_ids=[0,7]>, [{"a"}, {}]>', '<mesh<["a"=3]>, [{"a"}, {}]>',
                                      '<mesh<["a"=99999, "q"=99999]>, [{}, {}]>', '<mesh<["a"=0]>, [{"a"}, {}]>'])
def test_shardings_of_no_known_form_are_told(sharding: str) -> None:
    with pytest.raises(UserError, match="%s: the sharding by which it cuts or joins is of no form that irscope knows"):
        boundary(sharding, '"a", "q"')


def test_a_mesh_of_one_device_cuts_nothing(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "one.hlo"
    path.write_text(
        'HloModule m, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["a"=1]>}}\n'
        "ENTRY e {\n  x = f32[2] parameter(0)\n  y = f32[3] parameter(1)\n"
        '  s = (f32[2], f32[3]) custom-call(x, y), custom_call_target="xla.sdy.GlobalToLocalShape"\n'
        "  a = f32[2] get-tuple-element(s), index=0\n"
        '  ROOT r = f32[2] custom-call(a), custom_call_target="xla.sdy.LocalToGlobalShape"\n}\n')
    np.savez(tmp_path / "x.npz", x=np.array([1, 2], np.float32), y=np.zeros(3, np.float32))
    np.savez(tmp_path / "want.npz", out0=np.array([1, 2], np.float32))
    assert cli("compile-and-run", path, "--inputs", tmp_path / "x.npz", "--expect", tmp_path / "want.npz", "--check").exit_code == 0


def test_a_shard_of_another_shape_than_declared_is_told(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "wrong.hlo"
    text = (DATA / "shard_map_axes.pre.hlo").read_text()
    path.write_text(text.replace("ROOT shard_map.7 = f32[2,8]", "ROOT shard_map.7 = f32[2,16]").replace("->f32[2,8]", "->f32[2,16]"))
    run = cli("compile-and-run", path, "--partitions", 8)
    assert run.exit_code == 2
    assert "its sharding gives f32[2,8], but it is declared f32[2,16]" in run.stderr
