"""What TorchInductor and torch.compile write: IR before and after fusion, output code, structured traces, logs."""
from __future__ import annotations

import re
from collections.abc import Callable

from irscope.formats.inductor.code import read_output_code
from irscope.formats.inductor.findings import report
from irscope.formats.inductor.ir import read_ir
from irscope.formats.inductor.printer import print_module
from irscope.formats.inductor.recorded import read_log_text, read_trace_text
from irscope.formats.inductor.scheduler import HEADER
from irscope.formats.syntax import SyntaxFault
from irscope.graph import Reading
from irscope.source import SourceText

__all__ = ["TITLE", "is_record", "is_trace", "print_module", "read", "sniff"]

TITLE = "what TorchInductor wrote: IR, output code, a trace or a log"

HELP = "this reader takes ir_pre_fusion.txt, ir_post_fusion.txt, output_code.py, traces (TORCH_TRACE) and logs (TORCH_LOGS)"
HEAD = 1 << 16
_GLOG = r"^(?:\[rank\d+\]:)?[VDIWEC]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ [^\]\s]+:\d+\] "
_IR = re.compile(rf"^{HEADER.pattern[:-1]}\n(\w+)\.writes = ", re.MULTILINE)
_CODE = re.compile(r"^(?:# AOT ID: \[|async_compile = AsyncCompile\(\)|from torch\._inductor\.async_compile import |"
                   r"assert_size_stride = torch\._C\._dynamo\.guards)", re.MULTILINE)
_MARKS = ("# AOT ID: [", "async_compile", "assert_size_stride")
"""One of these is in what the pattern above finds; looking for them is much faster."""
_TRACE = re.compile(_GLOG + r"\{\"", re.MULTILINE)
_ANY_LOG = re.compile(_GLOG + r"(?:\[[^\]\s]+\] )?\[__\w+\]", re.MULTILINE)
_TAGS = tuple(f"[__{tag}]" for tag in ("fusion", "ir_pre_fusion", "ir_post_fusion", "output_code", "graph_breaks", "recompiles",
                                       "recompiles_verbose", "guards"))
"""What a log has that FX graphs alone do not: the reader of FX graphs reads logs of nothing else."""

_KINDS: tuple[tuple[Callable[[str], bool], Callable[[SourceText], Reading]], ...] = (
    (lambda text: is_log(text), read_log_text), (lambda text: is_trace(text), read_trace_text),
    (lambda text: is_code(text), read_output_code), (lambda text: is_ir(text), read_ir))
"""How a text is known, and its reader. Logs and traces come first: they hold texts of the other kinds."""


def sniff(text: str) -> float:
    """The confidence that Inductor or torch.compile wrote a text."""
    return 0.95 if any(known(text) for known, _ in _KINDS) else 0.0


def is_record(text: str) -> bool:
    """Whether a text begins as a log or a trace of a run does."""
    head = text[:HEAD]
    return _TRACE.search(head) is not None or _ANY_LOG.search(head) is not None


def is_log(text: str) -> bool:
    """Whether a text is a log (``TORCH_LOGS``) that tells more than FX graphs."""
    return "[__" in text and any(tag in text for tag in _TAGS) and _ANY_LOG.search(text[:HEAD]) is not None


def is_trace(text: str) -> bool:
    """Whether a text is a structured trace."""
    head = text[:HEAD]
    return "] {\"" in head and _TRACE.search(head) is not None and _ANY_LOG.search(head) is None


def is_code(text: str) -> bool:
    """Whether a text is the Python that Inductor generates."""
    head = text[:HEAD]
    return any(mark in head for mark in _MARKS) and _CODE.search(head) is not None


def is_ir(text: str) -> bool:
    """Whether a text is the scheduler's nodes before or after fusion."""
    head = text[:HEAD]
    return ".writes = " in head and _IR.search(head) is not None


def read(source: SourceText) -> Reading:
    """Read a text of any of these kinds; one that shows no sign of them is read as IR."""
    reader = next((reader for known, reader in _KINDS if known(source.text)), read_ir)
    reading = reader(source)
    if not reading.modules and reading.ok:
        report(reading, [SyntaxFault(0, "there is no scheduler node, kernel call or compilation in this text", HELP)])
    return reading
