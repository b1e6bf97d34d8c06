"""CUDA devices: none yet. Programs can ask."""


def is_available() -> bool:
    """False: this build runs on the CPU only."""
    return False


def device_count() -> int:
    """The number of CUDA devices: 0."""
    return 0


def manual_seed_all(seed) -> None:
    """Does nothing: there is no CUDA generator to seed."""
