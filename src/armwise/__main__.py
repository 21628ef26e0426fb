"""``python -m armwise``: the command line."""

import sys

from armwise.cli.main import main

sys.exit(main())
