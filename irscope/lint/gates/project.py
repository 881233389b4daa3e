"""CHK001, CHK002: what ``irscope check`` finds beyond the gates of one model."""

from __future__ import annotations

from irscope.lint.gate import Gate


class ResultsDiffer(Gate):
    """A model computes other results than expected.

    ## What it does
    Compiles the model and runs it on the given inputs (drawn from ``seed`` if none are given), and compares each output with an
    ``.npz`` (``expect``) or with the output of an earlier dump for the same inputs (``previous``), under ``rtol`` and ``atol``.

    ## Why is this bad?
    An export that changed its results is another model.

    ## Example
    ```
    [[tool.irscope.check.model]]
    path = "exports/mlp.hlo"
    inputs = "tests/mlp_inputs.npz"
    expect = "tests/mlp_outputs.npz"
    rtol = 1e-4
    ```

    ## Use instead
    ``irscope diff OLD NEW`` shows what changed in the graph; ``irscope compile-and-run --expect`` compares in more detail. If the new
    results are right, store them.

    ## Known false positives
    Drawn inputs may be outside the model's domain (logarithms of negative numbers): provide real inputs.
    """

    code, name, option = "CHK001", "results-differ", "check"
    formats = ()


class UnusableModel(Gate):
    """A model of the project's file is missing, cannot be read, or cannot be checked.

    ## What it does
    Reports a pattern in ``models`` that matches no file, a file that is not a dump, and a demand that cannot be checked on a model (a
    fusion budget with dynamic shapes, a run with a missing weight).

    ## Why is this bad?
    A check that silently examines nothing always passes.

    ## Example
    ```
    [tool.irscope.check]
    models = ["exports/*.hlo"]
    ```

    ## Use instead
    Write the dump before the check runs, or correct the pattern.

    ## Known false positives
    None.
    """

    code, name, option = "CHK002", "unusable-model", "check"
    formats = ()
