"""Where rows live. Trusted for one sentence: every row is counted exactly once."""
