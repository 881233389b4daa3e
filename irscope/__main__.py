"""``python -m irscope`` is the same as ``irscope``."""
import sys

from irscope.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
