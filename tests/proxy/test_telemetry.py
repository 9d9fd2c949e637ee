from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAVY = ("prometheus_client", "opentelemetry", "google.protobuf", "requests")


def test_what_is_off_is_not_even_imported() -> None:
    asked = (
        "import sys; from proxy.app import App; from proxy.settings import Settings; App(Settings())\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603 - our own program
    assert ran.stdout.strip() == "[]"
