"""XLA's HLO protos: HloProto, HloModuleProto and snapshots, binary and as text."""
from irscope.formats.hlo import print_module
from irscope.formats.hlo_pb.reader import read_binary, read_text
from irscope.formats.hlo_pb.sniffing import kind_of_bytes, kind_of_text
from irscope.graph import Reading
from irscope.source import SourceText

__all__ = ["TITLE", "print_module", "read", "read_bytes", "sniff", "sniff_bytes"]

TITLE = "an HLO proto"


def sniff(text: str) -> float:
    """The confidence that a text is the text form of an HLO proto."""
    return 1.0 if kind_of_text(text) is not None else 0.0


def read(source: SourceText) -> Reading:
    """Read the text form of an HLO proto."""
    return read_text(source, kind_of_text(source.text) or "HloProto")


def sniff_bytes(data: bytes) -> float:
    """The confidence that bytes are a binary HLO proto."""
    return 1.0 if kind_of_bytes(data) is not None else 0.0


def read_bytes(data: bytes, name: str) -> Reading:
    """Read a binary HLO proto. Raises UserError where it is none, or not all of one."""
    return read_binary(data, name, kind_of_bytes(data) or "HloProto")
