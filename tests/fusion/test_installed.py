"""``xla-cpu@installed`` is the release of the jaxlib beside irscope, whose metadata is read and which is never imported."""
from __future__ import annotations

import sys
from importlib import metadata

import pytest

from irscope.fusion import AsWritten, installed_remark, policy_named
from irscope.source import UserError


@pytest.mark.parametrize(("installed", "release", "remark"), [
    ("0.12.0.1", "jaxlib-0.12.0.1", []),
    ("0.11.2", "jaxlib-0.11.2", []),
    ("0.10.3", "jaxlib-0.10.2", ["jaxlib-0.10.3 is installed, which irscope was not compared with: xla-cpu@jaxlib-0.10.2 decides"]),
    ("1.0.0+cuda", "jaxlib-0.12.0.1", ["jaxlib-1.0.0+cuda is installed, which irscope was not compared with: xla-cpu@jaxlib-0.12.0.1 decides"]),
])
def test_the_installed_release_decides(monkeypatch: pytest.MonkeyPatch, installed: str, release: str, remark: list[str]) -> None:
    monkeypatch.setattr(metadata, "version", lambda package: {"jaxlib": installed}[package])
    policy = policy_named("xla-cpu@installed")
    assert isinstance(policy, AsWritten) and policy.version == f"xla-cpu@{release}"
    assert installed_remark("xla-cpu@installed") == remark
    assert "jaxlib" not in sys.modules and "jax" not in sys.modules


def test_a_release_that_is_not_there_or_too_old_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda package: "0.4.1")
    with pytest.raises(UserError, match=r"jaxlib 0\.4\.1 is installed, older than all releases of xla-cpu"):
        policy_named("xla-cpu@installed")

    def missing(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(UserError, match="jaxlib is not installed where irscope is"):
        policy_named("xla-cpu@installed")


@pytest.mark.parametrize("policy", ["tvm", "irscope"])
def test_compilers_without_a_package_have_no_installed_release(policy: str) -> None:
    with pytest.raises(UserError, match=f"the releases of {policy} are those of no Python package"):
        policy_named(f"{policy}@installed")
