"""Pictures of released models and of plans, by scikit-learn's convention; made of public facts and releases alone."""
