"""What the XLA policies share: fusible instructions, and the tests and transformations of XLA's passes."""
