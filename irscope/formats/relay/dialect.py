"""The requirements and guarantees of Relay's operators."""
from irscope.graph import Dialect, Typing

RELAY = Dialect("relay", Typing.INFERRED, default_policy="tvm", instruction="expression", computation="function", module="Relay module",
                whole_text="TVM prints the table of constants with mod.astext(show_meta_data=True)", styles=("course", "relay"))
