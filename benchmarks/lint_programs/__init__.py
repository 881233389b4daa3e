"""The programs of ``lint_pairs.py``: pairs with one fault each, and mixes of several."""
