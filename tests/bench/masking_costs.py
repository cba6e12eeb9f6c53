"""Time and memory of a masked edit beside Pillow's own decoding and encoding, each in a process of its own."""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from tests.adapters.masks import EditOutcome, EditPlan, Mask, finish_edit, packed, plan_edit
from tests.adapters.pixels import read_rgb
from tests.bench.masking_simulator import Answer, blob, drifting, edited, frames, jpeg, photograph, png

SIDES_PX = (1024, 2048, 4096)
_TIMES = 3
_PILLOW = """
import io, json, pathlib, sys, time
from PIL import Image
original = (pathlib.Path(sys.argv[1]) / "original.png").read_bytes()
taken = []
for _ in range(int(sys.argv[2])):
    started_s = time.perf_counter()
    with Image.open(io.BytesIO(original)) as image:
        image.load()
        image.save(io.BytesIO(), "PNG")
    taken.append(time.perf_counter() - started_s)
status = pathlib.Path("/proc/self/status").read_text(encoding="ascii")
peak_mb = int(status.partition("VmHWM:")[2].split()[0]) / 1024
print(json.dumps({"pillow_s": min(taken), "peak_mb": peak_mb}))
"""


@dataclass(frozen=True)
class Cost:
    """Seconds (the best of three) and megabytes at the peak, of planning, of finishing, and of Pillow's way."""

    side_px: int
    plan_s: float
    finish_s: float
    peak_mb: float
    pillow_s: float
    pillow_peak_mb: float


def costs(sides: tuple[int, ...] = SIDES_PX) -> list[Cost]:
    """Return what an edit of about a twentieth of the picture costs, by the picture's side."""
    found = []
    for side in sides:
        with tempfile.TemporaryDirectory() as folder:
            _prepare(Path(folder), side)
            ours = _child(["-m", "tests.bench.masking_costs", folder])
            theirs = _child(["-c", _PILLOW, folder, str(_TIMES)])
        peak, pillow_peak = ours["peak_mb"], theirs["peak_mb"]
        found.append(Cost(side, ours["plan_s"], ours["finish_s"], peak, theirs["pillow_s"], pillow_peak))
    return found


def _prepare(folder: Path, side: int) -> None:
    small = photograph("camera", min(side, 2048), min(side, 2048), 3)
    pixels = np.asarray(cv2.resize(small, (side, side), interpolation=cv2.INTER_CUBIC), np.uint8)
    mask = blob(side, side, (side * 0.55, side * 0.45), side * 0.12)
    (folder / "original.png").write_bytes(png(pixels))
    (folder / "mask.png").write_bytes(packed(mask).data)
    plan = plan_edit((folder / "original.png").read_bytes(), packed(mask), frames("1K"))
    assert isinstance(plan, EditPlan)
    sent = read_rgb(plan.crop)
    area = np.where((sent != read_rgb(plan.marked)).any(axis=2), 255, 0).astype(np.uint8)
    how = drifting(4)
    (folder / "answer.jpg").write_bytes(jpeg(Answer(edited(sent, area, 4), how).pixels, 92))


def _child(arguments: list[str]) -> dict[str, float]:
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _ours(folder: Path) -> dict[str, float]:
    original, answer = (folder / "original.png").read_bytes(), (folder / "answer.jpg").read_bytes()
    data = (folder / "mask.png").read_bytes()
    with Image.open(io.BytesIO(data)) as image:
        mask = Mask(*image.size, data)
    plans, finishes = [], []
    for _ in range(_TIMES):
        started_s = time.perf_counter()
        plan = plan_edit(original, mask, frames("1K"))
        planned_s = time.perf_counter()
        assert isinstance(plan, EditPlan)
        outcome = finish_edit(plan, answer)
        finishes.append(time.perf_counter() - planned_s)
        plans.append(planned_s - started_s)
        assert isinstance(outcome, EditOutcome)
        assert outcome.composite is not None
        assert outcome.changed_outside == 0
    return {"plan_s": min(plans), "finish_s": min(finishes), "peak_mb": _peak_mb()}


def _peak_mb() -> float:
    # Not getrusage: its peak is inherited from the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> None:
    """Measure an edit in this process and print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.masking_costs")
    parser.add_argument("folder", type=Path)
    print(json.dumps(_ours(parser.parse_args().folder)))


if __name__ == "__main__":
    main()
