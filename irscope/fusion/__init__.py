"""Fusion: which operators of a primitive graph become one kernel, under whose rules, and why not more of them."""
from irscope.fusion.plan import EdgeVerdict, Group, Plan
from irscope.fusion.policy import POLICIES, AsWritten, Policy, policy_named

__all__ = ["POLICIES", "AsWritten", "EdgeVerdict", "Group", "Plan", "Policy", "policy_named"]
