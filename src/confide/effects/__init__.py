"""Effects of columns on the score of a released model: curves, levels and tables, with bands; all post-processing."""
