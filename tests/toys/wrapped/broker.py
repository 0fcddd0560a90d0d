"""A broker of ours by another command: `python -m tests.toys.wrapped.broker CONFIG`. Its log says so."""

from __future__ import annotations

import sys

from brokers.__main__ import main

if __name__ == "__main__":
    print("a broker in other clothes", file=sys.stderr, flush=True)
    sys.exit(main())
