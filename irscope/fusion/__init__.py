"""Fusion: which operators of a primitive graph share a kernel under a compiler's rules, and why the others do not."""
from irscope.fusion.across import across_releases, change_words, uncompared
from irscope.fusion.origin import AUTO, origin_of
from irscope.fusion.plan import EdgeVerdict, Group, Plan
from irscope.fusion.policy import (
           POLICIES,
           AsWritten,
           Policy,
           compiler_of,
           follows_text,
           installed_remark,
           policy_for,
           policy_named,
           releases_of,
)

__all__ = ["AUTO", "POLICIES", "AsWritten", "EdgeVerdict", "Group", "Plan", "Policy", "across_releases", "change_words", "compiler_of",
           "follows_text", "installed_remark", "origin_of", "policy_for", "policy_named", "releases_of", "uncompared"]
