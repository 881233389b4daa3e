"""Fusion: which operators of a primitive graph become one kernel, under whose rules, and why not more of them."""
from irscope.fusion.plan import EdgeVerdict, Group, Plan
from irscope.fusion.policy import POLICIES, AsWritten, Policy, compiler_of, policy_named, releases_of

__all__ = ["POLICIES", "AsWritten", "EdgeVerdict", "Group", "Plan", "Policy", "compiler_of", "policy_named",
           "releases_of"]
