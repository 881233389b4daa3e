"""The machine model: a table of a few numbers, each with its source; built in, or from a user's file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from irscope.fusion import compiler_of
from irscope.source import UserError, did_you_mean
from irscope.source.data_text import toml_table
from irscope.source.files import read_plain_text

BUILT_IN = ("cpu", "h100", "a100", "b200")
DEAR = 2.0
"""How much of one resource a machine may lack beside the others: server cores of one bandwidth differ by two in their arithmetic."""
PLAIN = ("dispatch_us", "launch_us", "read_gbs", "write_gbs", "vector_gflops")
"""Keys of a table that hold one number."""
DEFAULT = "cpu"
LEAST, MOST = 1e-12, 1e18
"""What a number of a table may be, so that no product or quotient of two overflows or becomes zero."""


@dataclass(frozen=True, slots=True)
class Cache:
    """Kernels that move at most ``bytes`` move them at ``gbs`` GB/s."""

    bytes: float
    gbs: float


@dataclass(frozen=True, slots=True)
class Machine:
    """A device table. Times are microseconds, bandwidths GB/s, rates GFLOP/s.

    ``dispatch_us`` is what an operator costs on the host when Python calls it, ``launch_us`` what a kernel of a compiled program costs
    before it works (``policy_launch_us``: the same in the programs of one policy's compiler), ``overlaps`` whether the host calls the next
    operator while kernels run. ``vector_gflops`` are additions and
    multiplications, ``matrix_gflops`` products by the element type of their operands. ``sources`` says of each number where it comes from.
    A saving may be ``fast`` times smaller than estimated, and ``slow`` times larger.
    """

    name: str
    title: str
    dispatch_us: float
    launch_us: float
    read_gbs: float
    write_gbs: float
    vector_gflops: float
    matrix_gflops: Mapping[str, float]
    caches: tuple[Cache, ...] = ()
    policy_launch_us: Mapping[str, float] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    overlaps: bool = False
    fast: float = 1.0
    slow: float = 1.0

    def variants(self) -> tuple[Machine, Machine]:
        """The table of a machine with dear memory, and of one with dear arithmetic: a saving that only one of them has is not certain."""
        caches = tuple(Cache(level.bytes, level.gbs / DEAR) for level in self.caches)
        memory = replace(self, read_gbs=self.read_gbs / DEAR, write_gbs=self.write_gbs / DEAR, caches=caches)
        products = {dtype: rate / DEAR for dtype, rate in self.matrix_gflops.items()}
        return memory, replace(self, vector_gflops=self.vector_gflops / DEAR, matrix_gflops=products)

    def launch(self, policy: str) -> float:
        """What a kernel costs before it works, in the programs of a policy's compiler."""
        return self.policy_launch_us.get(compiler_of(policy), self.launch_us)

    def launch_source(self, policy: str) -> str:
        """Where that number comes from."""
        compiler = compiler_of(policy)
        return self.sources.get(f"launch_us.{compiler}" if compiler in self.policy_launch_us else "launch_us", "")

    def move_us(self, read: float, written: float) -> float:
        """The time in which a kernel moves its bytes: at the bandwidth of the smallest cache that holds them all, else of memory."""
        for level in self.caches:
            if read + written <= level.bytes:
                return (read + written) / (level.gbs * 1e3)
        return read / (self.read_gbs * 1e3) + written / (self.write_gbs * 1e3)

    def product_us(self, flops: float, dtype: str) -> float:
        """The time of a matrix product or convolution over operands of a type; types without a rate have that of f32."""
        return flops / (self.matrix_gflops.get(dtype, self.matrix_gflops["f32"]) * 1e3)

    def vector_us(self, flops: float, bits: int = 32) -> float:
        """The time of simple operations; wider elements fill fewer lanes."""
        return flops * max(1.0, bits / 32) / (self.vector_gflops * 1e3)


def machine_named(name: str) -> Machine:
    """A built-in table, or one in a TOML file (the name ends in ``.toml``). Raises UserError for anything else."""
    if name.lower() in BUILT_IN:
        return _built_in(name.lower())
    if not name.endswith(".toml"):
        known = did_you_mean(name, BUILT_IN) or f"the machines are {', '.join(BUILT_IN)}; or name a .toml file"
        raise UserError(f"there is no machine {name!r}", known)
    text = read_plain_text(name)
    try:
        given = toml_table(text)
    except ValueError as error:
        raise UserError(f"{name}: {error}", "docs/lint/machines.md shows a table") from None
    base = given.pop("base", DEFAULT)
    if base not in BUILT_IN:
        raise UserError(f"{name}: base = {base!r} is no built-in table", did_you_mean(str(base), BUILT_IN) or ", ".join(BUILT_IN))
    return _read(given, Path(name).stem, name, machine_named(base))


@cache
def _built_in(name: str) -> Machine:
    path = files("irscope.lint") / "machines" / f"{name}.toml"
    return _read(toml_table(path.read_text(encoding="utf-8")), name, name, None)


def _read(given: dict[str, object], name: str, where: str, base: Machine | None) -> Machine:
    """The table of a file; what it does not say is that of ``base``."""
    known = ("title", "overlaps", "caches", "matrix_gflops", "fast", "slow", *PLAIN)
    for key in given:
        if key not in known:
            raise UserError(f"{where} has no key {key!r}", did_you_mean(key, known) or f"known are {', '.join(known)}, and base")
    sources = dict(base.sources) if base is not None else {}
    numbers: dict[str, float] = {}
    launch = dict(base.policy_launch_us) if base is not None else {}
    for key in PLAIN:
        if key in given:
            numbers[key], sources[key] = _number(given[key], f"{where}: {key}", where)
        elif base is not None:
            numbers[key] = getattr(base, key)
        else:
            raise UserError(f"{where} does not say {key}")
    if "launch_us" in given:
        launch = {}
        policies = _table(given["launch_us"], "policies", where) if isinstance(given["launch_us"], dict) else {}
        for policy, row in policies.items():
            launch[policy], sources[f"launch_us.{policy}"] = _number(row, f"{where}: launch_us.policies.{policy}", where)
    products = dict(base.matrix_gflops) if base is not None else {}
    for dtype, row in _table(given, "matrix_gflops", where).items():
        products[dtype], sources[f"matrix_gflops.{dtype}"] = _number(row, f"{where}: matrix_gflops.{dtype}", where)
    if "f32" not in products:
        raise UserError(f"{where} does not say matrix_gflops.f32")
    caches = base.caches if base is not None and "caches" not in given else _caches(given, where, sources)
    title = str(given.get("title", name if base is None else f"{name}, after {base.name}"))
    overlaps = given.get("overlaps", base.overlaps if base is not None else False)
    if not isinstance(overlaps, bool):
        raise UserError(f"{where}: overlaps is {overlaps!r}", "it takes true or false")
    range_ = {}
    for key in ("fast", "slow"):
        default = getattr(base, key) if base is not None else 1.0
        range_[key], sources[key] = _number(given[key], f"{where}: {key}", where) if key in given else (default, sources.get(key, ""))
        if range_[key] < 1:
            raise UserError(f"{where}: {key} is {range_[key]:g}", "it takes a factor of 1 or more")
    return Machine(
        name, title, **numbers, matrix_gflops=products, caches=caches, policy_launch_us=launch, sources=sources, overlaps=overlaps, **range_
    )


def _caches(given: dict[str, object], where: str, sources: dict[str, str]) -> tuple[Cache, ...]:
    rows = given.get("caches", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UserError(f"{where}: caches is no list of tables", "[[caches]] with bytes and gbs")
    found = []
    for number, row in enumerate(rows):
        size, _ = _number(row.get("bytes"), f"{where}: caches: bytes", where)
        speed, _ = _number(row.get("gbs"), f"{where}: caches: gbs", where)
        found.append(Cache(size, speed))
        sources[f"caches.{number}"] = str(row.get("source", where))
    return tuple(sorted(found, key=lambda level: level.bytes))


def _table(given: dict[str, object], key: str, where: str) -> dict[str, object]:
    table = given.get(key, {})
    if not isinstance(table, dict):
        raise UserError(f"{where}: {key} is not a table", f"[{key}] with f32 = 500.0 and others")
    return table


def _number(row: object, what: str, where: str) -> tuple[float, str]:
    """``3.0``, or a table with ``value`` and ``source``; from LEAST to MOST."""
    value, source = (row.get("value"), str(row.get("source", where))) if isinstance(row, dict) else (row, where)
    if not isinstance(value, int | float) or isinstance(value, bool) or not LEAST <= value <= MOST:
        raise UserError(f"{what} is {str(value)[:40]}", f"it takes a number from {LEAST:g} to {MOST:g}")
    return float(value), source
