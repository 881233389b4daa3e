"""The requirements and guarantees of exported programs and FX graphs: torch's operators, called as FX calls them."""
from irscope.graph import Dialect, Typing

EXPORT = Dialect("export", Typing.EXECUTED, writes_in_place=True, default_policy="inductor", scope_separator=".", scopes_vary=True,
                 module="exported program")
