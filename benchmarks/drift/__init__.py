"""What a release of jaxlib decides otherwise than the policy ``xla-cpu``: the programs, their compilation, and the comparison."""
