"""Local rules: what one node over simplified operands may become."""
