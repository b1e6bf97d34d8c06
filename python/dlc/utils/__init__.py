"""Helpers around training: data loading."""

from dlc.utils import data

__all__ = ["data"]
