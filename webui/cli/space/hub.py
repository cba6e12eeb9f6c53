"""Pushes a built Space to the Hub: compares, plans the steps, and carries them out; no secret is ever printed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath

import httpx2
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, SpaceHardware, Volume, get_token
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled
from huggingface_hub.hf_api import RepoFile

from webui.cli.parser import CommandFailed
from webui.cli.space.build import BuiltSpace
from webui.cli.space.spacefile import KEYS, Spacefile

_DATA = "/data"
# The Hub creates these with every repository.
_KEPT_FILES = frozenset({".gitattributes"})
_MESSAGE = "Bring the Space up to date with aivista space push"
# Each step in words, and the call that carries it out.
_Steps = list[tuple[str, Callable[[], object]]]
_REFUSALS = {
    401: "the Hub does not know the token; get another one and run `hf auth login`.",
    402: "the Hub wants the owner of {about} to pay for this kind of Space; see its billing settings.",
    403: "the token may not write to {about}; use one with the right to write there.",
    429: "the Hub asks to slow down; try again in a few minutes.",
}


def push(built: BuiltSpace, environ: Mapping[str, str], *, repo: str | None, is_dry_run: bool) -> None:
    """Create or update the Space, printing each step; a dry run asks the Hub and prints, but changes nothing.

    huggingface_hub finds the token by itself. Raises CommandFailed when there is none, when a secret's value is neither
    in `environ` nor on the Space, and when the Hub refuses.
    """
    spacefile, token = built.spacefile, get_token()
    if token is None:
        raise CommandFailed("there is no token for Hugging Face: run `hf auth login`, or set HF_TOKEN.")
    api = HfApi(token=token, library_name="aivista")
    with _one_sentence(repo or "the Hub"):
        # Always asked: an invalid token must be known before anything is changed.
        account = str(api.whoami()["name"])
        name = repo or re.sub(r"[^a-z0-9]+", "-", spacefile.title.lower()).strip("-") or "aivista"
        repo_id = name if "/" in name else f"{account}/{name}"
    secrets = {name: environ[name] for name in spacefile.secrets if environ.get(name)}
    wanted = _Wanted(api, repo_id, built, secrets)
    with _one_sentence(repo_id):
        is_there = api.repo_exists(repo_id, repo_type="space")
        there = api.get_space_secrets(repo_id).keys() if is_there else ()
        if missing := [name for name in spacefile.secrets if name not in secrets and name not in there]:
            raise CommandFailed(f"the Spacefile names the secret {missing[0]}, which your environment does not hold.")
        steps = wanted.updating() if is_there else wanted.creating()
        for what, change in steps:
            if not is_dry_run:
                change()
            print(f"{'would ' if is_dry_run else ''}{what}", flush=True)
        if not steps:
            print("everything is up to date", flush=True)
        if spacefile.pays.who == "visitors":
            for key in sorted(set(KEYS).intersection(there)):
                print(f"The Space still holds the secret {key}; the studio does not use it, because visitors pay.")
    print(f"{'The Space is to be' if is_dry_run else 'The Space is'} at {api.endpoint}/spaces/{repo_id}", flush=True)


@contextmanager
def _one_sentence(about: str) -> Iterator[None]:
    """Turn an error of the Hub into one sentence without headers or tokens."""
    try:
        yield
    except OfflineModeIsEnabled:
        raise CommandFailed("HF_HUB_OFFLINE is set, so nothing can be pushed.") from None
    except HFValidationError:
        raise CommandFailed(f"{about} is no name for a Space; use OWNER/NAME.") from None
    except HfHubHTTPError as error:
        reason = " ".join((error.server_message or "").split())
        status = error.response.status_code
        if status in _REFUSALS:
            raise CommandFailed(_REFUSALS[status].format(about=about)) from None
        raise CommandFailed(f"the Hub refuses with {status}{f' ({reason})' if reason else ''}.") from None
    except (httpx2.HTTPError, OSError) as error:
        raise CommandFailed(f"the Hub cannot be reached ({type(error).__name__}); try again later.") from None
    except ValueError as error:
        raise CommandFailed(f"the Hub refuses the README ({' '.join(str(error).split())}).") from None


@dataclass(frozen=True)
class _Wanted:
    """The wanted state on the Hub: the Space's name, description and files, and the values of its secrets that are
    known."""

    api: HfApi
    repo_id: str
    built: BuiltSpace
    secrets: Mapping[str, str]

    @property
    def spacefile(self) -> Spacefile:
        """The Spacefile."""
        return self.built.spacefile

    @property
    def volumes(self) -> list[Volume]:
        """The volumes that are mounted into the Space."""
        bucket = self.spacefile.storage.bucket
        owner = self.repo_id.partition("/")[0]
        return [Volume(type="bucket", source=f"{owner}/{bucket}", mount_path=_DATA)] if bucket else []

    def creating(self) -> _Steps:
        """Return the steps that create the Space."""
        spacefile, runs_on = self.spacefile, self.spacefile.runs_on
        create = partial(
            self.api.create_repo,
            self.repo_id,
            repo_type="space",
            private=spacefile.private,
            space_sdk=runs_on.sdk,
            # A Space gets the free hardware by default, and its sleep time cannot be chosen.
            space_hardware=None if runs_on.hardware == "cpu-basic" else SpaceHardware(runs_on.hardware),
            space_sleep_time=runs_on.sleep_after_s,
            space_secrets=[{"key": name, "value": value} for name, value in self.secrets.items()] or None,
            space_variables=[{"key": name, "value": value} for name, value in spacefile.variables.items()] or None,
            space_volumes=self.volumes or None,
        )
        kind = "private" if spacefile.private else "public"
        what = f"create the {kind} Space {self.repo_id} (sdk {runs_on.sdk}, hardware {runs_on.hardware})"
        also = [f"secret {name}" for name in spacefile.secrets] + [f"variable {name}" for name in spacefile.variables]
        also += [f"{volume.source} at {volume.mount_path}" for volume in self.volumes]
        return [*self._bucket(), (f"{what} with {', '.join(also)}" if also else what, create), *self._commit({})]

    def updating(self) -> _Steps:
        """Return the steps that update the Space."""
        api, repo_id, runs_on = self.api, self.repo_id, self.spacefile.runs_on
        # The Hub does not return the values of secrets, so they cannot be compared.
        steps: _Steps = [
            (f"set secret {name}", partial(api.add_space_secret, repo_id, name, value))
            for name, value in self.secrets.items()
        ]
        variables = api.get_space_variables(repo_id)
        for name, value in self.spacefile.variables.items():
            if name not in variables or variables[name].value != value:
                steps.append((f"set variable {name} to {value}", partial(api.add_space_variable, repo_id, name, value)))
        runtime, sleep_s = api.get_space_runtime(repo_id), runs_on.sleep_after_s
        hardware = runtime.requested_hardware or runtime.hardware or "cpu-basic"
        if hardware != runs_on.hardware:
            request = partial(api.request_space_hardware, repo_id, SpaceHardware(runs_on.hardware), sleep_time=sleep_s)
            steps.append((f"change the hardware from {hardware} to {runs_on.hardware}", request))
        elif sleep_s is not None and runtime.sleep_time != sleep_s:
            steps.append((f"have it sleep after {sleep_s} s", partial(api.set_space_sleep_time, repo_id, sleep_s)))
        mounted = runtime.volumes or []
        there = {(volume.source, volume.mount_path) for volume in mounted}
        if missing := [one for one in self.volumes if (one.source, _DATA) not in there]:
            volumes = [*(volume for volume in mounted if volume.mount_path != _DATA), *missing]
            steps += self._bucket()
            steps.append((f"mount {missing[0].source} at {_DATA}", partial(api.set_space_volumes, repo_id, volumes)))
        tree = api.list_repo_tree(repo_id, recursive=True, repo_type="space")
        return steps + self._commit({file.path: file.blob_id for file in tree if isinstance(file, RepoFile)})

    def _bucket(self) -> _Steps:
        return [
            (
                f"create the private bucket {volume.source}, unless it is there",
                partial(self.api.create_bucket, volume.source, private=True, exist_ok=True),
            )
            for volume in self.volumes
        ]

    def _commit(self, there: Mapping[str, str]) -> _Steps:
        """Return the one commit that makes the Space's files those of the build; no step when they are equal."""
        files = {file.as_posix(): self.built.folder / file for file in self.built.files}
        changed = [name for name, path in files.items() if there.get(name) != _blob_id(path.read_bytes())]
        gone = sorted(there.keys() - files.keys() - _KEPT_FILES)
        if not changed and not gone:
            return []
        operations = [
            *(CommitOperationAdd(name, files[name]) for name in changed),
            *(CommitOperationDelete(name, is_folder=False) for name in gone),
        ]
        commit = partial(self.api.create_commit, self.repo_id, operations, commit_message=_MESSAGE, repo_type="space")
        if not there:
            tops = sorted({PurePosixPath(name).parts[0] for name in changed})
            what = f"commit {len(changed)} files ({', '.join(tops)})"
        elif changed:
            what = f"commit {len(changed)} changed file{'' if len(changed) == 1 else 's'} ({', '.join(changed)})"
        else:
            what = "commit"
        return [(f"{what}{', removing ' + ', '.join(gone) if gone else ''}", commit)]


def _blob_id(content: bytes) -> str:
    """Return git's name of a content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
