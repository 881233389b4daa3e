"""The requirements and guarantees of TorchScript's operators."""
from irscope.graph import Dialect, Typing

TORCHSCRIPT = Dialect("torchscript", Typing.EXECUTED, writes_in_place=True, default_policy="inductor", scope_separator=".",
                      module="TorchScript graph")
