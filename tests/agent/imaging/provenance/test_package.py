from __future__ import annotations

import subprocess
import sys


def test_nothing_that_decodes_pixels_is_loaded_before_it_is_needed() -> None:
    script = (
        "import sys\n"
        "from agent.imaging import provenance\n"
        "provenance.read(b'')\n"
        "print(*sorted({'PIL', 'cv2', 'numpy', 'lancedb'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
