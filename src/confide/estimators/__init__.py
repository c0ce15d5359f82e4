"""What users call, by the conventions of scikit-learn."""

from confide.first_use import submodules

__getattr__ = submodules(__name__)
