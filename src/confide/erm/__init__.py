"""What is minimised: losses, bounds on rows, sums over rows, perturbed objectives. Trusted."""
