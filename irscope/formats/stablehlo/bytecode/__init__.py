"""StableHLO as MLIR bytecode: ``.mlirbc`` files and what ``jax.export`` serialises, read through jaxlib (docs/why/jaxlib.md)."""
from irscope.formats.stablehlo.bytecode.container import sniff_bytes
from irscope.formats.stablehlo.bytecode.reader import read_bytes

__all__ = ["read_bytes", "sniff_bytes"]
