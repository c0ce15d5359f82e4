"""What makes Spark's Python workers: it has imported what they need, so that not each of them does.

Spark starts it as a module of this name.
"""

from __future__ import annotations

import importlib

if __name__ == "__main__":
    from pyspark.daemon import manager

    for name in ("pandas", "pyarrow", "pyspark.sql.pandas.serializers", "confide.data.spark", "tests.data.test_spark"):
        importlib.import_module(name)
    manager()
