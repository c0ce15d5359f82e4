"""What users call, by the conventions of scikit-learn."""

from confide.submodules import on_first_use

__getattr__ = on_first_use(__name__)
