"""What leaves a fit, as values: weights, public facts and the guarantee."""
