from __future__ import annotations

import subprocess
import sys

from tests.support.cases import each_case


@each_case(
    "use",
    [
        "import agent.imaging.masking",
        "import agent.adjusting",
        "from agent.imaging import provenance; provenance.read_recipe(b'')",
    ],
)
def test_nothing_that_decodes_pixels_is_loaded_before_it_is_needed(use: str) -> None:
    code = f"import sys; {use}; print(*sorted({{'PIL', 'cv2', 'numpy', 'lancedb'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
