"""The key on this machine: in one file that its person alone can read, and nowhere else."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from pydantic import SecretStr

from agent.errors import StorageFailure
from agent.settings import Settings
from webui.kept_key import KeptKey
from webui.sessions import Visitor, open_sessions
from webui.words import load_words

KEY = SecretStr("AIzaSyKeptOnThisMachine0001")
OTHER = SecretStr("AIzaSyOfTheSession0002")
ME = Visitor("token", "local", load_words("en"))


def test_a_key_is_kept_whole_read_again_and_removed(tmp_path: Path) -> None:
    kept = KeptKey(tmp_path)
    assert kept.read() is None
    kept.keep(OTHER)
    kept.keep(KEY)
    [path] = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert KeptKey(tmp_path).read() == KEY
    assert KEY.get_secret_value() not in repr(vars(kept))
    kept.remove()
    kept.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_others_could_read_is_closed_to_them_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = KeptKey(tmp_path)
    kept.keep(KEY)
    [path] = tmp_path.iterdir()
    path.chmod(0o644)
    assert kept.read() == KEY
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "could be read by others" in caplog.text
    assert KEY.get_secret_value() not in caplog.text


@pytest.mark.parametrize("data", [b"", b"\n", b"x" * 2000, b"two\nlines", "schlüssel".encode(), b"\x00\xff"])
def test_a_file_that_holds_no_key_counts_as_none(tmp_path: Path, data: bytes) -> None:
    kept = KeptKey(tmp_path)
    kept.keep(KEY)
    [path] = tmp_path.iterdir()
    path.write_bytes(data)
    assert kept.read() is None


def test_a_link_to_another_file_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere"
    secret.write_text("AIzaSomebodyElses")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "gemini.key").symlink_to(secret)
    assert KeptKey(tmp_path / "home").read() is None


def test_a_home_that_cannot_be_written_is_told_without_the_key(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(StorageFailure) as caught:
        KeptKey(tmp_path / "home").keep(KEY)
    assert KEY.get_secret_value() not in f"{caught.value!r} {caught.value.info!r}"


def test_the_key_of_the_session_goes_before_the_one_that_is_kept(tmp_path: Path) -> None:
    sessions = open_sessions(Settings(home=tmp_path), is_shared=False, language=None)
    assert sessions.kept is not None
    sessions.kept.keep(KEY)
    assert sessions.key(ME) == KEY
    sessions.hold_key(ME, OTHER)
    assert (sessions.key(ME), sessions.session_key(ME)) == (OTHER, OTHER)
    sessions.hold_key(ME, None)
    assert (sessions.key(ME), sessions.session_key(ME)) == (KEY, None)


@pytest.mark.parametrize(("is_shared", "is_public"), [(True, False), (False, True), (True, True)])
def test_where_others_can_come_no_key_is_kept_and_none_is_read(
    tmp_path: Path, is_shared: bool, is_public: bool
) -> None:
    KeptKey(tmp_path).keep(KEY)
    sessions = open_sessions(Settings(home=tmp_path, is_public=is_public), is_shared=is_shared, language=None)
    assert sessions.kept is None
    assert sessions.key(ME) is None


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_the_folder_of_a_new_home_is_its_persons_alone(tmp_path: Path) -> None:
    KeptKey(tmp_path / "new" / "home").keep(KEY)
    assert stat.S_IMODE((tmp_path / "new" / "home").stat().st_mode) == 0o700
