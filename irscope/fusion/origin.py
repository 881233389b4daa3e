"""The policy of a module for which none is named: that of the compiler that its text comes from."""
from __future__ import annotations

from dataclasses import dataclass

from irscope.graph import Module

AUTO = "auto"
"""Names no policy: the text decides."""


@dataclass(frozen=True, slots=True)
class PolicyOrigin:
    """The policy of the compiler that a text comes from, and ``why`` it is that one."""

    policy: str
    why: str


def origin_of(module: Module, device: str | None = None) -> PolicyOrigin:
    """The policy of the compiler of a module's format: the one for GPUs if the text shows a GPU or if a device is named."""
    dialect = module.dialect
    article = "an" if dialect.module[0] in "aeioAEIOH" else "a"
    if dialect.gpu_policy:
        sign = f"--device {device}" if device is not None else dialect.gpu_sign(module) if dialect.gpu_sign is not None else ""
        if sign:
            return PolicyOrigin(dialect.gpu_policy, f"{article} {dialect.module} of a GPU ({sign})")
        return PolicyOrigin(dialect.default_policy, f"{article} {dialect.module}, and nothing in it shows a GPU")
    return PolicyOrigin(dialect.default_policy, f"{article} {dialect.module}")
