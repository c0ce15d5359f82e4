"""How sure: intervals and tables, made of what was released and of public facts."""
