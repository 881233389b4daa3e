"""CHK001, CHK002: what ``irscope check`` finds beyond the gates of one model."""

from __future__ import annotations

from irscope.lint.gate import Gate


class ResultsDiffer(Gate):
    """A model computes other numbers than it should.

    ## What it does
    Compiles the model and runs it on the given inputs (drawn from ``seed`` where none are given), and compares each output with an
    ``.npz`` (``expect``) or with what an earlier dump gives for the same inputs (``previous``), under ``rtol`` and ``atol``.

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
    ``irscope diff OLD NEW`` shows what changed in the graph; ``irscope compile-and-run --expect`` tells more of the numbers. When the new
    results are right, store them.

    ## Known false positives
    Drawn inputs may lie where the model is not meant to work (logarithms of negative numbers): give inputs of your own.
    """

    code, name, option = "CHK001", "results-differ", "check"
    formats = ()


class UnusableModel(Gate):
    """A model of the project's file is missing, cannot be read, or cannot be judged.

    ## What it does
    Reports a pattern of ``models`` that fits no file, a file that is no dump, and a demand that cannot be judged on a model (a fusion
    budget where shapes are open, a run where a weight is missing).

    ## Why is this bad?
    A check that silently looks at nothing passes for ever.

    ## Example
    ```
    [tool.irscope.check]
    models = ["exports/*.hlo"]
    ```

    ## Use instead
    Write the dump before the check runs, or mend the pattern.

    ## Known false positives
    None.
    """

    code, name, option = "CHK002", "unusable-model", "check"
    formats = ()
