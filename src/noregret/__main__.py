"""``python -m noregret``: the command line."""

import sys

from noregret.cli.main import main

sys.exit(main())
