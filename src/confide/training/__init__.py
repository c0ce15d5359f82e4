"""How a fit is planned from public facts, charged and released."""
