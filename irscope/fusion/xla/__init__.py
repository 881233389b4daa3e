"""What the policies of XLA share: instructions that can be fused into each other, and what XLA's passes ask of them."""
