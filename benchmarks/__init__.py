"""Measurements, each a program of its own. As a package the folder comes before one of that name that Opacus installs."""
