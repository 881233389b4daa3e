"""Programs as they are rewritten for GPUs, as recorded."""
from __future__ import annotations

import pytest

from tests.fusion.record_gpu_forms import form_on_gpu, recorded

FORMS = {name: (form, text) for name, form, text in recorded()}


@pytest.mark.parametrize("name", FORMS)
def test_a_program_has_its_form_for_gpus(name: str) -> None:
    form, text = FORMS[name]
    assert form_on_gpu(name, text) == form
