"""A script for a Python that has jaxlib: prints MLIR bytecode as text. irscope runs it in a child process, and imports only its constants.

    python print_text.py SECONDS BYTES < model.mlirbc > model.mlir

The exit status is 0, 1 where jaxlib refuses the bytecode (standard error says why), or 3 where this Python has no jaxlib.
The folder of this file is the first in which Python looks for modules: no file in it may have the name of a module that jaxlib imports.
"""
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

REFUSED, NO_JAXLIB = 1, 3
PORTABLE = b"StableHLO_v"
DIALECTS = (("sdy", "register_dialect"), ("mpmd", "register_dialect"), ("mhlo", "register_mhlo_dialect"), ("chlo", "register_dialect"),
            ("stablehlo", "register_dialect"))
"""The dialects of jax's modules, with what registers them. Releases differ in which they have."""


def main() -> int:
    """Print standard input as text; returns the exit status."""
    _limit(int(sys.argv[1]), int(sys.argv[2]))
    data = sys.stdin.buffer.read()
    try:
        ir = import_module("jaxlib.mlir.ir")
        stablehlo = import_module("jaxlib.mlir.dialects.stablehlo")
    except ImportError as error:
        print(error, file=sys.stderr)
        return NO_JAXLIB
    with ir.Context() as context:
        context.enable_multithreading(False)
        context.allow_unregistered_dialects = True
        _register(ir, context)
        try:
            if PORTABLE in data[:64]:
                module = stablehlo.deserialize_portable_artifact(context, data)
            else:
                module = ir.Module.parse(data, context)
            text = module.operation.get_asm(enable_debug_info=True)
        except Exception as error:  # jaxlib's exceptions have no common class
            print(error, file=sys.stderr)
            return REFUSED
    sys.stdout.buffer.write(text.encode())
    return 0


def _register(ir: ModuleType, context: Any) -> None:
    """Make the dialects known that jax registers: those of MLIR (func, arith...), and those of :data:`DIALECTS`."""
    registry = ir.DialectRegistry()
    import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for name, register in DIALECTS:
        try:
            getattr(import_module(f"jaxlib.mlir.dialects.{name}"), register)(context)
        except (ImportError, AttributeError):
            continue


def _limit(seconds: int, size: int) -> None:
    """Bound the processor time, the reserved memory and the output of this process, where the system can."""
    try:
        resource = import_module("resource")
    except ImportError:
        return
    for name, most in (("RLIMIT_CPU", seconds), ("RLIMIT_AS", size), ("RLIMIT_FSIZE", size), ("RLIMIT_CORE", 0)):
        resource.setrlimit(getattr(resource, name), (most, most))


if __name__ == "__main__":
    sys.exit(main())
