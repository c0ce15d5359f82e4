"""Released models as files."""
