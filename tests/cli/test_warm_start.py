"""A second run of a dump takes its program from the cache: with the same results, and only where nothing that matters has changed."""
from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import irscope
from irscope.api import RunOptions, RunResult, compiled_run, stored_programs
from irscope.backends import cache
from irscope.backends.executable import aligned_empty
from irscope.backends.program_key import digest_of_file, package_state, toolchain
from irscope.source.files import MAX_BYTES
from tests.backends.test_cache import give_away
from tests.cli.test_startup import modules_after
from tests.conftest import Cli
from tests.formats.test_onnx import external

ADD = "ENTRY main { x = f32[3] parameter(0)\n y = f32[3] parameter(1)\n ROOT s = f32[3] add(x, y) }\n"
SIZED = "graph(%x : Tensor, %k : int):\n  %a : Tensor = aten::nonzero(%x)\n  %b : Tensor = aten::mul(%a, %k)\n  return (%b)\n"
COMPILERS = ("irscope.formats.hlo", "irscope.ops", "irscope.expand", "irscope.passes", "irscope.fusion", "irscope.lower.templates",
             "irscope.backends.compile", "irscope.backends.model", "irscope.analysis")
"""Packages and modules that read and compile."""


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache without entries."""
    monkeypatch.setenv("IRSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def ran(what: str | Path, options: RunOptions | None = None, **given: Any) -> RunResult:
    return irscope.run(what, options, **given)


def of(**arrays: Any) -> dict[str, Any]:
    return {name: np.asarray(value) for name, value in arrays.items()}


def same(one: RunResult, two: RunResult) -> bool:
    """Whether results are bitwise equal."""
    return len(one.outputs) == len(two.outputs) and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in zip(one.outputs, two.outputs))


@pytest.mark.parametrize(("sample", "options"), [
    ("mlp.pre.hlo", {}), ("mlp.opt.hlo", {"threads": 2}), ("transformer.pre.hlo", {"precision": "fast"}), ("residual.pre.hlo", {}),
    ("newton.pre.hlo", {}), ("dense.relay", {}), ("conv_two_consumers.relay", {}), ("tagger.inlined.txt", {"weights": ("tagger.pt",)}),
])
def test_the_second_run_is_bitwise_equal(sample: str, options: dict[str, Any], samples: Path) -> None:
    if "weights" in options:
        options = {**options, "weights": tuple(str(samples / name) for name in options["weights"])}
    first, again = (ran(samples / sample, RunOptions(**options)) for _ in range(2))
    without = ran(samples / sample, RunOptions(no_cache=True, **options))
    assert (first.from_cache, again.from_cache, without.from_cache) == (False, True, False)
    assert same(first, again) and same(first, without)
    assert (first.kernels, first.flops, first.threads, first.drawn, list(first.paths)) == \
        (again.kernels, again.flops, again.threads, again.drawn, list(again.paths))


def test_a_program_of_sizes_that_vary_comes_from_the_cache() -> None:
    text = "ENTRY main { x = f32[<=8] parameter(0)\n ROOT n = f32[<=8] negate(x) }\n"
    for size, cached in ((3, False), (3, True), (5, False), (5, True)):
        result = ran(text, inputs=of(x=np.arange(size, dtype=np.float32)))
        assert result.from_cache is cached and result.outputs[0].tolist() == [-float(i) for i in range(size)]


def test_values_of_inputs_do_not_matter_where_they_are_data() -> None:
    for value, cached in ((1.0, False), (2.0, True)):
        result = ran(ADD, inputs=of(x=np.full(3, value, np.float32), y=np.ones(3, np.float32)))
        assert result.from_cache is cached and result.outputs[0].tolist() == [value + 1] * 3
    assert ran(ADD, RunOptions(seed=3), inputs=of(x=np.zeros(3, np.float32))).from_cache is False  # other arrays are given
    one, two = (ran(ADD, RunOptions(seed=seed), inputs=of(x=np.zeros(3, np.float32))) for seed in (3, 4))
    assert one.from_cache and two.from_cache and not same(one, two)


def test_values_matter_where_sizes_and_numbers_come_from_them() -> None:
    seen: set[tuple[int, int]] = set()
    for count, factor in ((3, 2), (3, 2), (4, 2), (4, 3), (3, 2)):
        x = np.zeros(6, np.float32)
        x[:count] = 1
        result = ran(SIZED, inputs=of(x=x, k=factor))
        assert result.outputs[0].ravel().tolist() == [factor * i for i in range(count)]
        assert result.from_cache is ((count, factor) in seen)
        seen.add((count, factor))


@pytest.mark.parametrize("change", [{"precision": "exact"}, {"threads": 3}, {"cpu": "x86-64-v2"}, {"source_format": "hlo"}, {"autotune": True}])
def test_other_options_are_other_programs(change: dict[str, Any]) -> None:
    if "cpu" in change and sys.platform == "darwin":
        pytest.skip("a processor of x86")
    ran(ADD, RunOptions(threads=1))
    assert not ran(ADD, RunOptions(**{"threads": 1, **change})).from_cache
    assert ran(ADD, RunOptions(threads=1, bench=True, runs=2, seed=9)).from_cache


def test_weights_belong_to_the_key(tmp_path: Path) -> None:
    x = of(x=np.ones(3, np.float32))
    for value, cached in ((1.0, False), (1.0, True), (5.0, False)):
        result = ran(ADD, inputs=x, weights=of(y=np.full(3, value, np.float32)))
        assert result.from_cache is cached and result.outputs[0].tolist() == [value + 1] * 3
    file = tmp_path / "w.npz"
    for value, cached in ((1.0, False), (1.0, True), (5.0, False)):
        np.savez(file, y=np.full(3, value, np.float32))
        result = ran(ADD, RunOptions(weights=(str(file),)), inputs=x)
        assert result.from_cache is cached and result.outputs[0].tolist() == [value + 1] * 3


def test_many_weights_are_stored_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irscope.api.stored_programs.LITTLE", 4)
    given: dict[str, Any] = {"inputs": of(x=np.ones(3, np.float32)), "weights": of(y=np.ones(3, np.float32))}
    assert [ran(ADD, **given).from_cache for _ in range(2)] == [False, False]
    assert [ran(ADD, RunOptions(cache_weights=True), **given).from_cache for _ in range(2)] == [False, True]
    assert not ran(ADD, **given).from_cache


def test_weights_that_are_too_large_for_an_entry_are_reported(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (cache, compiled_run):
        monkeypatch.setattr(module, "LARGEST_ENTRY", 8)
    (tmp_path / "a.hlo").write_text(ADD)
    np.savez(tmp_path / "w.npz", y=np.ones(3, np.float32))
    for _ in range(2):
        result = cli("compile-and-run", tmp_path / "a.hlo", "--weights", tmp_path / "w.npz", "--cache-weights")
        assert "the program is not in the cache: its weights take 12 B, and an entry has at most 8 B" in result.stderr


def test_the_content_counts_and_not_the_path(tmp_path: Path) -> None:
    one, two = tmp_path / "one.hlo", tmp_path / "two.hlo"
    one.write_text(ADD)
    two.write_text(ADD)
    assert [ran(path).from_cache for path in (one, two, one)] == [False, True, True]
    one.write_text(ADD.replace("add(", "multiply("))
    changed = ran(one)
    assert not changed.from_cache and not same(changed, ran(two))


def test_a_program_whose_constants_lie_in_other_files_is_not_stored(tmp_path: Path) -> None:
    path = external(tmp_path, "w.bin")
    x = np.zeros(2, np.float32)
    for values in ([2, 3], [2, 3], [5, 7]):
        (tmp_path / "w.bin").write_bytes(b"skip" + np.array(values, np.float32).tobytes())
        made = ran(path, inputs=of(x=x))
        assert (made.outputs[0].tolist(), made.from_cache) == (values, False)
        model = irscope.compile(path)
        assert (model(x)[0].tolist(), model.from_cache) == (values, False)


def test_a_file_that_changes_while_its_key_is_made_is_not_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "a.hlo"
    path.write_text(ADD)
    given = of(x=np.ones(3, np.float32), y=np.ones(3, np.float32))

    def digest_and_change(file: str) -> str | None:
        digest = digest_of_file(file)
        path.write_text(ADD.replace("add(", "subtract("))
        return digest
    with monkeypatch.context() as patched:
        patched.setattr(stored_programs, "digest_of_file", digest_and_change)
        assert ran(path, inputs=given).outputs[0].tolist() == [0, 0, 0]
    path.write_text(ADD)
    assert ran(path, inputs=given).outputs[0].tolist() == [2, 2, 2]


def test_a_file_larger_than_any_dump_is_not_hashed(tmp_path: Path) -> None:
    path = tmp_path / "large.hlo"
    with open(path, "wb") as file:
        file.truncate(MAX_BYTES + 1)  # sparse: it takes no space on the disk
    assert digest_of_file(str(path)) is None


def test_options_may_be_of_types_of_numpy() -> None:
    text = "ENTRY main { x = f32[<=4] parameter(0)\n ROOT s = f32[<=4] negate(x) }\n"
    shapes: Any = MappingProxyType({"x": (np.int64(3),)})
    int_of_numpy: Any = np.int64(1)
    options = RunOptions(shapes=shapes, fill_elided=True, seed=int_of_numpy)
    assert [ran(text, options).from_cache for _ in range(2)] == [False, True]
    assert [irscope.compile(text, shapes=shapes).from_cache for _ in range(2)] == [False, True]
    assert not irscope.compile(text, shapes={"x": (2,)}).from_cache


def test_notes_are_repeated(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "two.hlo"
    path.write_text("HloModule a\n" + ADD + "HloModule b\n" + ADD)
    first, again = (cli("compile-and-run", path, "--format", "json") for _ in range(2))
    assert "holds 2 modules" in first.stderr and first.stderr == again.stderr
    assert [json.loads(run.stdout)["from_cache"] for run in (first, again)] == [False, True]
    other = tmp_path / "renamed.hlo"
    shutil.copy(path, other)
    renamed = cli("compile-and-run", other, "--format", "json")
    assert "renamed.hlo holds 2 modules" in renamed.stderr


def test_errors_are_those_of_the_first_run(cli: Cli, tmp_path: Path) -> None:
    path, given = tmp_path / "add.hlo", tmp_path / "x.npz"
    path.write_text(ADD)
    np.savez(given, x=np.zeros(4, np.float32))
    cli("compile-and-run", path)
    first, again = (cli("compile-and-run", path, "--inputs", given) for _ in range(2))
    assert first.exit_code == 2 and first.stderr == again.stderr and "has the shape [4]" in first.stderr


def test_expected_outputs_are_compared(cli: Cli, tmp_path: Path) -> None:
    path, out, wrong = tmp_path / "add.hlo", tmp_path / "o.npz", tmp_path / "e.npz"
    path.write_text(ADD)
    cli("compile-and-run", path, "--save-outputs", out)
    np.savez(wrong, out0=np.zeros(3, np.float32))
    for expected, status in ((out, 0), (wrong, 1)):
        result = cli("compile-and-run", path, "--expect", expected)
        assert result.exit_code == status and "from the cache" in result.stdout, result.stderr
    assert cli("compile-and-run", path, "--check").exit_code == 0


def test_no_cache_neither_reads_nor_writes(empty_cache: Path, cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "add.hlo"
    path.write_text(ADD)
    cli("compile-and-run", path, "--no-cache")
    before = len(list(empty_cache.rglob("*"))) if empty_cache.exists() else 0
    assert cli("compile-and-run", path, "--no-cache").exit_code == 0
    assert (len(list(empty_cache.rglob("*"))) if empty_cache.exists() else 0) == before
    assert not ran(path).from_cache


# ---------------------------------------------------------------------- broken and foreign entries

def programs(folder: Path) -> list[Path]:
    """The entries that are whole programs, and those that list what a program depends on."""
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink() and
            (b'"types"' in path.read_bytes()[:100] or b'"arena_bytes"' in path.read_bytes()[:400])]


EDITS = ("flip", "cut", "empty", "swap", "link", "pipe", "folder", "mode", "owner")


@pytest.mark.skipif(sys.platform == "win32", reason="owners, modes and pipes are those of POSIX")
@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("which", [0, 1])
def test_a_broken_or_foreign_entry_is_compiled_again(edit: str, which: int, empty_cache: Path, cli: Cli, tmp_path: Path,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    text, outputs = tmp_path / "add.hlo", [tmp_path / f"{i}.npz" for i in range(3)]
    text.write_text(ADD)
    assert cli("compile-and-run", text, "--save-outputs", outputs[0]).exit_code == 0
    assert len(programs(empty_cache)) == 2
    path = programs(empty_cache)[which]
    edited(path, edit, programs(empty_cache)[1 - which], tmp_path, monkeypatch)
    result = cli("compile-and-run", text, "--save-outputs", outputs[1])
    assert result.exit_code == 0 and "compiled  " in result.stdout
    assert "note: the program in the cache is not used, because it " in result.stderr and "it is compiled again" in result.stderr
    again = cli("compile-and-run", text, "--save-outputs", outputs[2])
    assert again.exit_code == 0 and (edit == "folder" or ("from the cache" in again.stdout and "not used" not in again.stderr))
    for other in outputs[1:]:
        assert np.load(other)["out0"].tobytes() == np.load(outputs[0])["out0"].tobytes()


def edited(path: Path, edit: str, other: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change an entry."""
    content = bytearray(path.read_bytes())
    if edit == "flip":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    elif edit in ("cut", "empty"):
        path.write_bytes(content[:-1] if edit == "cut" else b"")
    elif edit == "swap":
        path.write_bytes(other.read_bytes())
    elif edit == "mode":
        path.chmod(0o666)
    elif edit == "owner":
        if os.geteuid() != 0:
            pytest.skip("only root gives files away")
        give_away(path, monkeypatch)
    else:
        path.rename(folder / "elsewhere")
        if edit == "link":
            path.symlink_to(folder / "elsewhere")
        elif edit == "pipe":
            os.mkfifo(path)
        else:
            path.mkdir()


@pytest.mark.skipif(sys.platform == "win32", reason="modes are those of POSIX")
def test_a_cache_that_others_may_write_is_not_used(empty_cache: Path) -> None:
    ran(ADD)
    empty_cache.chmod(0o777)
    assert not ran(ADD).from_cache


def test_entries_of_an_unknown_structure_are_compiled_again(empty_cache: Path, cli: Cli, tmp_path: Path) -> None:
    """Entries with a right digest, as another release of irscope might write them under the same key."""
    text = tmp_path / "add.hlo"
    text.write_text(ADD)
    first = cli("compile-and-run", text, "--format", "json")
    for content in (b"", b"[]", b"{", b"\xff" * 100, b'{"types": 3, "values": []}'):
        for path in programs(empty_cache):
            cache.write(path.name, content)
            result = cli("compile-and-run", text, "--format", "json")
            assert result.exit_code == 0 and "has an unknown structure" in result.stderr, (content, result.stderr)
            assert json.loads(result.stdout)["outputs"] == json.loads(first.stdout)["outputs"]


# ---------------------------------------------------------------------- what a warm start costs

def test_a_warm_start_imports_neither_readers_nor_the_compiler(samples: Path, tmp_path: Path) -> None:
    command = ("compile-and-run", str(samples / "mlp.pre.hlo"), "--format", "json", "--threads", "1")
    modules_after(*command)
    status, names, said = modules_after(*command)
    assert status == 0 and json.loads(said)["from_cache"]
    assert sorted(name for name in names if name.startswith(COMPILERS)) == []
    assert names.isdisjoint({"rich", "ml_dtypes", "onnx", "google", "jaxlib"})


# ---------------------------------------------------------------------- irscope.compile

@pytest.mark.parametrize("sample", ["mlp.pre.hlo", "newton.pre.hlo", "residual.pre.hlo"])
def test_a_compiled_model_comes_from_the_cache(sample: str, samples: Path) -> None:
    first, again = (irscope.compile(samples / sample) for _ in range(2))
    assert (first.from_cache, again.from_cache) == (False, True)
    assert repr(first) == repr(again) and first.flops == again.flops and first.inputs == again.inputs and first.outputs == again.outputs
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(port.shape).astype(port.dtype.numpy()) for port in first.inputs]
    for one, two in zip(first(*arrays), again(*arrays), strict=True):
        assert one.tobytes() == two.tobytes()
    call = again.bind(arrays)
    call()
    assert call.outputs[0].tobytes() == first(*arrays)[0].tobytes()


def test_the_graph_of_a_model_from_the_cache_is_lowered_when_it_is_looked_at(samples: Path) -> None:
    first, again = (irscope.compile(samples / "mlp.pre.hlo") for _ in range(2))
    assert again.from_cache
    assert [node.op.name for node in again.module.main().nodes] == [node.op.name for node in first.module.main().nodes]
    assert again.program is again.program and len(again.program.launches()) == again.kernels == first.kernels
    assert all(kernel.body for kernel in again.program.kernels())


def test_options_and_weights_of_compile_belong_to_its_key() -> None:
    y = np.ones(3, np.float32)
    assert [irscope.compile(ADD, **options).from_cache for options in (
        {}, {}, {"threads": 1}, {"precision": "exact"}, {"weights": {"y": y}}, {"weights": {"y": y}}, {"weights": {"y": 2 * y}}, {})] == \
        [False, True, False, False, False, True, False, True]
    assert not ran(ADD).from_cache  # a run binds what a text leaves open by other rules


def test_a_bounded_size_of_a_model_from_the_cache() -> None:
    text = "ENTRY main { x = f32[<=8] parameter(0)\n ROOT n = f32[<=8] negate(x) }\n"
    first, again = (irscope.compile(text) for _ in range(2))
    assert again.from_cache and again.inputs == first.inputs
    assert again(np.ones(3, np.float32))[0].tolist() == [-1.0] * 3


def test_errors_of_compile_are_those_of_the_first_call() -> None:
    for _ in range(2):
        with pytest.raises(irscope.UserError, match="there is no input 'z' to fix"):
            irscope.compile(ADD, weights={"z": np.ones(3, np.float32)})


@pytest.mark.parametrize("kind", ["weights", "constants"])
def test_arrays_that_change_later_do_not_change_a_model(kind: str) -> None:
    given = {"weights": "parameter(1)", "constants": "constant({...})"}[kind]
    text = ADD.replace("parameter(1)", given)
    fixed = aligned_empty(np.dtype(np.float32), (3,))  # compiled code can read it in place
    options: Any = {kind: {"y": fixed}}
    for _ in range(2):
        fixed[...] = 1
        model = irscope.compile(text, **options)
        fixed[...] = 7
        assert model(np.ones(3, np.float32))[0].tolist() == [2, 2, 2]


def test_another_release_of_a_package_is_another_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    assert package_state("a_package_of_this_test") == ""
    first = tmp_path / "a_package_of_this_test" / "__init__.py"
    first.parent.mkdir()
    first.write_text("version = 1")
    importlib.invalidate_caches()
    before = package_state("a_package_of_this_test")
    first.write_text("version = 10")
    assert before and package_state("a_package_of_this_test") != before
    assert package_state("ml_dtypes") and package_state("ml_dtypes") in toolchain()
