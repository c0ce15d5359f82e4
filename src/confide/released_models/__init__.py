"""What a fit releases, as values: weights, public facts and the guarantee."""
