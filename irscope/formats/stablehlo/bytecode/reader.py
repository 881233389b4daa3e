"""Reads bytecode: jaxlib prints it as text, which the reader of texts reads."""
from __future__ import annotations

from irscope.formats.stablehlo.bytecode.bridge import Failed, printed
from irscope.formats.stablehlo.bytecode.container import unpacked
from irscope.formats.stablehlo.reader import read
from irscope.graph import Reading
from irscope.source import SourceText, UserError

AGAIN = "copy or export it again"


def read_bytes(data: bytes, name: str) -> Reading:
    """Read bytecode, or a serialised Exported. Places in findings are those of the text that jaxlib prints.

    Raises UserError where the bytes are damaged, and where jaxlib is missing.
    """
    found = unpacked(data)
    if found is None:
        raise UserError(f"{name} is a serialised jax.export.Exported, but its MLIR bytecode is damaged or cut off", AGAIN)
    try:
        text = printed(found.data, name)
    except Failed as fault:
        newer = f", or take the jaxlib of the jax that wrote it, or a newer one: it is StableHLO {found.version}" if found.version else ""
        raise UserError(f"{name} is {found.kind}, which jaxlib does not read: {fault}", AGAIN + newer) from None
    return read(SourceText(name, text))
