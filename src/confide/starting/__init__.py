"""The start of a study: from the names of the columns of a table to a schema, a study file, a notebook and a script."""
