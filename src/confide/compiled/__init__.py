"""An optional compiled kernel: gradients over blocks of rows in one pass, for the first steps of solvers."""
