"""From columns to bounded rows, by public knowledge only."""
