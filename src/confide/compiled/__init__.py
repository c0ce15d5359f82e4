"""An optional compiled kernel: gradients over blocks of rows in one pass, for solvers' first steps and noisy gradients."""
