"""Black-box attacks on the guarantee: `make test` runs small ones, `make audit` all of them."""
