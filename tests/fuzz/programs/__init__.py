"""Random Python programs around tensor code, run eagerly and compiled; `python -m tests.fuzz.programs`."""
