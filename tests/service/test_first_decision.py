"""The service is there at once: what only an evaluation needs is imported when one is asked for."""

import subprocess
import sys


def test_the_service_starts_without_scipy():
    loaded = "[m for m in sys.modules if m.split('.')[0] in ('scipy', 'pandas')]"
    code = f"import sys, armwise.service.server.run; print({loaded})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
