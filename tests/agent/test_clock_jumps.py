"""A clock that jumps, ahead and back, in a turn and between two starts, in a real process: what comes later stays so,
and no duration is measured by it."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent import Settings, Studio, TurnState
from tests.adapters.records import Housekeeping
from tests.page import clean_environment
from tests.support.scenes import run

ROOT = Path(__file__).parents[2]
YEAR_S = 366 * 86400

# The system's own clock, wrong by as many seconds as stand in a file; the one for durations is left alone.
WRONG_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
static volatile long long *wrong;
__attribute__((constructor)) static void opened(void) {
    int file = open(getenv("WRONG_BY"), O_RDONLY);
    wrong = mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
}
int clock_gettime(clockid_t which, struct timespec *told) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(which, told);
    if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) told->tv_sec += *wrong;
    return failed;
}
time_t time(time_t *told) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (told) *told = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *told, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    told->tv_sec = now.tv_sec;
    told->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""

CHILD = """
import asyncio, json, os, struct, sys
from datetime import UTC, datetime
from pathlib import Path
from agent import Settings, Studio, TurnRequest

def set_clock(seconds):
    with open(os.environ["WRONG_BY"], "r+b") as file:
        file.write(struct.pack("q", seconds))

async def main(home, conversation_id, plan):
    async with Studio(Settings(home=Path(home))) as studio:
        key = conversation_id or (await studio.conversations.create()).id
        for wish, moment, jump in json.loads(plan):
            requests = [TurnRequest(text=wish), TurnRequest(text="hello")]
            async def follow(request, may_jump):
                async for event in studio.run_turn(key, request):
                    if may_jump and moment in (event.type, getattr(event, "step", None)):
                        set_clock(jump)
                return event.type
            # The second one waits in line while the clock jumps.
            ended = await asyncio.gather(*(follow(one, n == 0) for n, one in enumerate(requests)))
            assert ended == ["turn_done"] * 2, ended
        print(json.dumps([key, datetime.now(UTC).isoformat()]))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def wrong_clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("a process can only be given a wrong clock on Linux, by a C compiler")
    folder = tmp_path_factory.mktemp("clock")
    (folder / "clock.c").write_text(WRONG_CLOCK)
    library = folder / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, folder / "clock.c", "-ldl"], check=True)
    return library


def in_a_wrong_time(library: Path, home: Path, start_s: int, key: str, *plan: tuple[str, str, int]) -> tuple[str, str]:
    """Run turns in a process whose clock begins wrong by `start_s` and is set anew at a moment of each; return the
    conversation's id and what time that process ended at."""
    wrong_by = library.parent / "wrong_by"
    wrong_by.write_bytes(start_s.to_bytes(8, sys.byteorder, signed=True))
    environment = clean_environment(LD_PRELOAD=str(library), WRONG_BY=str(wrong_by))
    command = [sys.executable, "-X", "utf8", "-c", CHILD, str(home), key, json.dumps(plan)]
    child = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert child.returncode == 0, child.stderr
    made, ended_at = json.loads(child.stdout)
    return made, ended_at


async def test_turns_and_pictures_stay_in_order_and_no_duration_is_wrong(wrong_clock: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    key, _ = in_a_wrong_time(
        wrong_clock, home, 0, "", ("draw a red fox", "painting_started", YEAR_S), ("draw a barn", "turn_started", 0)
    )
    # It ended a year too early, and starts again a year too late.
    _, ended_at = in_a_wrong_time(
        wrong_clock,
        home,
        -YEAR_S,
        key,
        ("draw a tree", "painting_started", YEAR_S),
        ("draw a kite", "thinking", -YEAR_S),
    )
    assert datetime.now(UTC) - datetime.fromisoformat(ended_at) > timedelta(days=300)
    async with Studio(Settings(home=home)) as studio:
        await run(studio, key, "draw a lighthouse")
        kept = await studio.conversations.get(key)
    wishes = ["draw a red fox", "draw a barn", "draw a tree", "draw a kite"]
    assert [turn.text for turn in kept.turns] == [
        *(text for one in wishes for text in (one, "hello")),
        "draw a lighthouse",
    ]
    assert [turn.state for turn in kept.turns] == [TurnState.DONE] * 9
    assert [turn.parent for turn in kept.turns] == [None, *(turn.id for turn in kept.turns[:-1])]
    assert [picture.handle for picture in kept.pictures] == ["#1", "#2", "#3", "#4", "#5"]
    assert all(0 <= turn.seconds < 120 for turn in kept.turns), [turn.seconds for turn in kept.turns]
    assert await asyncio.to_thread(lambda: Housekeeping(home).check().findings) == ()
