"""How a fit is decided from public facts, charged and released."""
