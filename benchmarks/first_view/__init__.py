"""Whether the first view of an optimised program names what matters: the truth from the text alone, and what irscope shows."""
