from __future__ import annotations

import subprocess
import sys


def test_the_package_loads_no_pixel_library_until_it_is_used() -> None:
    heavy = (
        "import sys, agent.imaging.masking; print([name for name in ('cv2', 'numpy', 'PIL') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
