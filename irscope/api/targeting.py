"""The machine that code is made for, as the options name it."""
from __future__ import annotations

from irscope.api.options import RunOptions
from irscope.backends import llvm_compile
from irscope.backends.targets import EXAMPLES, Machine
from irscope.source import UserError, did_you_mean


def machine_for(options: RunOptions) -> Machine:
    """The machine of ``options.target`` and ``options.cpu``. Raises UserError for one that irscope generates no code for."""
    try:
        if not options.target:
            check_cpu(options)
            return llvm_compile.host(options.cpu)
        llvm_compile.cross(options.target)
        check_cpu(options)
        return llvm_compile.cross(options.target, options.cpu)
    except llvm_compile.CompileFailed as error:
        raise UserError(str(error), f"targets are those of x86_64, aarch64, riscv64 and armv7, such as {EXAMPLES}") from None


def check_cpu(options: RunOptions) -> None:
    """Raise UserError for a processor that LLVM does not know: LLVM aborts the process on some names."""
    if options.cpu in ("", "native") or llvm_compile.accepts(options.cpu, options.target):
        return
    known = [name for name in llvm_compile.cpus(options.target) if name != options.cpu]
    raise UserError(f"LLVM makes no code for {options.target or 'this machine'} under the name {options.cpu!r}",
                    did_you_mean(options.cpu, known) or "--cpu native is the processor here; others are x86-64-v3, znver4, ...")


def host_cpu(options: RunOptions) -> str:
    """The processor for code that runs here while another program is compiled: ``--cpu``, unless it is that of another machine."""
    return "" if options.target else options.cpu
