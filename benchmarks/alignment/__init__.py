"""Known edits and before/after pairs, on which the node alignment of ``irscope diff`` is measured."""
