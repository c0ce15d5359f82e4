"""How good released models are on private rows: the tables that are released, how rows fall into them, what they say."""
