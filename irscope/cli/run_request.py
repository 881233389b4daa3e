"""What ``compile-and-run`` was asked for, and the compiler's options that follow from it."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from irscope.source import UserError

if TYPE_CHECKING:
    from irscope.lower.options import Options


@dataclass(frozen=True, slots=True)
class Request:
    """The command line."""

    file: str
    inputs: tuple[str, ...]
    weights: tuple[str, ...]
    constants: str | None
    fill_elided: bool
    seed: int
    save_outputs: str | None
    expect: str | None
    check: bool
    rtol: float | None
    atol: float | None
    engine: str
    threads: int | None
    cpu: str
    precision: str
    autotune: bool
    no_cache: bool
    partitions: int
    bench: bool
    bench_seconds: float
    warmup: int
    runs: int | None
    emit: str | None
    target: str
    output: str
    format_: str
    from_: str | None
    shapes: dict[str, tuple[int, ...]]
    dtypes: dict[str, str]

    def options(self) -> Options:
        """The compiler's options."""
        from irscope.backends.pool import available_threads
        from irscope.lower.options import Options

        return Options(threads=self.threads or available_threads(), precision=self.precision)


def check_cpu(request: Request) -> None:
    """LLVM ends the whole process on some names of processors; they are found out before."""
    if request.cpu in ("", "native"):
        return
    from irscope.backends import llvm_compile
    from irscope.source import did_you_mean

    if llvm_compile.accepts(request.cpu, request.target):
        return
    known = [name for name in llvm_compile.cpus(request.target) if name != request.cpu]
    raise UserError(f"LLVM makes no code for {request.target or 'this machine'} under the name {request.cpu!r}",
                    did_you_mean(request.cpu, known) or "--cpu native is the processor here; others are x86-64-v3, znver4, ...")
