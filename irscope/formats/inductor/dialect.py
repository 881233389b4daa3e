"""The requirements and guarantees of what TorchInductor writes: its scheduler nodes and the calls of its output code."""
from irscope.graph import Dialect, Typing

INDUCTOR = Dialect("inductor", Typing.STATED, writes_in_place=True, default_policy="inductor", instruction="scheduler node",
                   module="Inductor text", whole_text="TORCH_COMPILE_DEBUG=1 writes the whole folder again",
                   no_program="give fx_graph_transformed.py of the same folder, the graph that Inductor compiled; for --why-not-fused "
                              "ir_pre_fusion.txt with ir_post_fusion.txt beside it")
