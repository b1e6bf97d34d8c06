"""`python -m dlc.opt` is dlc-opt: runs the compiler's passes and phases on a module's text (see --help)."""

import sys

from dlc import _C


def main() -> int:
    """Exit status of dlc-opt with this process's arguments; reads standard input if no file is named."""
    return _C._opt_main(["dlc-opt", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
