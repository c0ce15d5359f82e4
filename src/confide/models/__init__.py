"""Released models as values, as files, and as models of other libraries."""
