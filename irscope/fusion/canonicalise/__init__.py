"""XLA's passes before fusion, simulated on HLO from before them, with attribution of each rewritten instruction to the user's operators."""
from irscope.fusion.canonicalise.attribution import SIMPLIFIED, attribute_plans
from irscope.fusion.canonicalise.canonical import Canonical, canonicalise, is_kept_call
from irscope.fusion.canonicalise.pipeline import run_cpu
from irscope.fusion.canonicalise.signs import BARRIERS, early_signs, may_be_early, rewrite_early, unfollowed

__all__ = ["BARRIERS", "SIMPLIFIED", "Canonical", "attribute_plans", "canonicalise", "early_signs", "is_kept_call", "may_be_early",
           "rewrite_early", "run_cpu", "unfollowed"]
