"""What torch.compile fuses: Inductor's lowering, loops and scheduler, simulated decision by decision."""
