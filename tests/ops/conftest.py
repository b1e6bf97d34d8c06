"""Lets the tests of this folder import its helper modules, and builds the table of cases once."""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
