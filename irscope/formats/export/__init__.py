"""Exported programs and FX graphs of torch: archives (.pt2), and what torch prints."""
from irscope.formats.export.archive import is_archive
from irscope.formats.export.packed import read_bytes
from irscope.formats.export.printer import print_module
from irscope.formats.export.reader import read
from irscope.formats.export.sniffing import sniff

__all__ = ["TITLE", "print_module", "read", "read_bytes", "sniff", "sniff_bytes"]

TITLE = "an exported program or FX graph of torch"


def sniff_bytes(data: bytes) -> float:
    """The confidence that bytes are an archive of torch.export, from 0 to 1."""
    return 0.95 if is_archive(data) else 0.0
