"""What torch.compile fuses: Inductor's lowering, loops and scheduler, decision by decision."""
