"""What users call, by the conventions of scikit-learn."""
