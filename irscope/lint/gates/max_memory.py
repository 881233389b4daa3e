"""MEM001: more memory at once than is allowed."""

from __future__ import annotations

from irscope.analysis.survey import Survey
from irscope.graph import Module, bytes_of
from irscope.lint.gate import Gate
from irscope.lint.savings import human_bytes
from irscope.source import Finding, Note
from irscope.source.plural import plural


class MaxMemory(Gate):
    """More bytes are live at once than allowed.

    ## What it does
    Computes the live range of each value, in the order of the text, and compares the peak of temporaries and results with ``--max-memory``
    (``max-memory`` in the project's file). Parameters belong to the caller and are reported separately.

    ## Why is this bad?
    A run that needs more memory than the device has does not start; one that nearly fills it leaves no room for a larger batch.

    ## Example
    ```
    irscope lint step.hlo --max-memory 12GiB
    ```

    ## Use instead
    The finding names the live values at the peak: rematerialise cheap ones (``jax.checkpoint``), donate inputs, split the batch, or end
    the live range of a large value earlier. ``irscope lint --audit memory`` has the whole table.

    ## Known false positives
    The order is that of the text: for an unscheduled module the compiler may choose a better one, and fusion may remove some values.
    """

    code, name, option = "MEM001", "peak-live", "--max-memory"

    @classmethod
    def judge(cls, module: Module, limit: int) -> list[Finding]:
        """A finding when the peak of the entry is above ``limit`` bytes, or not known."""
        survey = Survey(module)
        entry = survey.entry
        life = survey.memory.graphs.get(entry) if entry is not None else None
        if entry is None or life is None or life.peak <= limit:
            unsized = survey.memory.unsized()
            return [cls.not_known(module, "the peak is", unsized)] if unsized is not None else []
        node = entry.nodes[life.peak_at]
        alive = survey.memory.live_at(entry, life.peak_at)
        notes = tuple(Note(f"%{n.name} holds {human_bytes(life.size[n.index])}", n.loc) for n in alive[:5])
        rest = sum(life.size[n.index] for n in alive[5:])
        notes += (Note(f"{plural(len(alive) - 5, 'other')} {'holds' if len(alive) == 6 else 'hold'} {human_bytes(rest)}"),) if rest else ()
        params = sum(bytes_of(p.type) for p in entry.params)
        allowed = f"{human_bytes(limit)} are allowed (parameters: {human_bytes(params)} more)"
        message = f"{human_bytes(life.peak)} live at %{node.name}, {allowed}"
        return [cls.broken(module, message, at=(entry, node), notes=notes,
                           help="irscope lint --audit memory lists the live values and their live ranges")]
