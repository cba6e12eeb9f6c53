"""A built Space's way to the Hub: what there is, what is to be done, and doing it; no secret's value is ever said."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

import httpx2
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, SpaceHardware, Volume, get_token
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled
from huggingface_hub.hf_api import RepoFile

from webui.space.building import BuiltSpace
from webui.space.spacefile import KEYS, Spacefile, SpaceProblem

_DATA = "/data"
# The Hub's own, made with every repository.
_KEPT_FILES = frozenset({".gitattributes"})
_MESSAGE = "Bring the Space up to date with aivista space push"


@dataclass(frozen=True)
class Step:
    """One change on the Hub: what it is, as `push` says it, and how it is made."""

    what: str
    do: Callable[[], object]


@dataclass(frozen=True)
class Wish:
    """What shall be on the Hub: the Space's name, its description, its files, and the values of its secrets that are
    at hand."""

    repo_id: str
    spacefile: Spacefile
    built: BuiltSpace
    secrets: Mapping[str, str]

    @property
    def volumes(self) -> list[Volume]:
        """What is mounted into the Space."""
        bucket = self.spacefile.storage.bucket
        owner = self.repo_id.partition("/")[0]
        return [Volume(type="bucket", source=f"{owner}/{bucket}", mount_path=_DATA)] if bucket else []


def push(
    spacefile: Spacefile,
    built: BuiltSpace,
    environ: Mapping[str, str],
    *,
    repo: str | None,
    is_dry_run: bool,
    say: Callable[[str], None],
) -> None:
    """Create the Space or bring it up to date, saying each step; a dry run asks the Hub and says, but changes nothing.

    The token is huggingface_hub's own to find. Raises SpaceProblem when there is none, when a secret's value is neither
    in `environ` nor on the Space, and when the Hub refuses.
    """
    token = get_token()
    if token is None:
        raise SpaceProblem("there is no token for Hugging Face: run `hf auth login`, or set HF_TOKEN.")
    api = HfApi(token=token, library_name="aivista")
    with _told(repo or "the Hub"):
        repo_id = _repo_id(api, repo, spacefile.title)
    with _told(repo_id):
        wish = Wish(repo_id, spacefile, built, {name: environ[name] for name in spacefile.secrets if environ.get(name)})
        is_there = api.repo_exists(repo_id, repo_type="space")
        steps = _updating(api, wish) if is_there else _creating(api, wish)
        for step in steps:
            if not is_dry_run:
                step.do()
            say(f"{'would ' if is_dry_run else ''}{step.what}")
        if not steps:
            say("everything is up to date")
        for warning in _warnings(api, wish) if is_there else ():
            say(warning)
    say(f"{'The Space is to be' if is_dry_run else 'The Space is'} at {api.endpoint}/spaces/{repo_id}")


@contextmanager
def _told(about: str) -> Iterator[None]:
    """Turn what goes wrong on the Hub into one sentence, in which no header and no token stands."""
    try:
        yield
    except OfflineModeIsEnabled:
        raise SpaceProblem("HF_HUB_OFFLINE is set, so nothing can be pushed.") from None
    except HFValidationError:
        raise SpaceProblem(f"{about} is no name for a Space; use OWNER/NAME.") from None
    except HfHubHTTPError as error:
        raise SpaceProblem(_refusal(about, error)) from None
    except (httpx2.HTTPError, OSError) as error:
        raise SpaceProblem(f"the Hub cannot be reached ({type(error).__name__}); try again later.") from None
    except ValueError as error:
        raise SpaceProblem(f"the Hub refuses the README ({' '.join(str(error).split())}).") from None


def _refusal(about: str, error: HfHubHTTPError) -> str:
    match error.response.status_code:
        case 401:
            return "the Hub does not know the token; get another one and run `hf auth login`."
        case 402:
            return f"the Hub wants the owner of {about} to pay for this kind of Space; see its billing settings."
        case 403:
            return f"the token may not write to {about}; use one with the right to write there."
        case 429:
            return "the Hub asks to slow down; try again in a few minutes."
        case status:
            said = " ".join((error.server_message or "").split())
            return f"the Hub refuses with {status}{f' ({said})' if said else ''}."


def _repo_id(api: HfApi, repo: str | None, title: str) -> str:
    # Asked for in any case: a token that is not good is to be known before anything is done.
    name = str(api.whoami()["name"])
    if repo and "/" in repo:
        return repo
    return f"{name}/{repo or re.sub(r'[^a-z0-9]+', '-', title.lower()).strip('-') or 'aivista'}"


def _creating(api: HfApi, wish: Wish) -> list[Step]:
    spacefile, runs_on = wish.spacefile, wish.spacefile.runs_on
    _require_secrets(wish, there=())
    secrets = [{"key": name, "value": wish.secrets[name]} for name in spacefile.secrets]
    variables = [{"key": name, "value": value} for name, value in spacefile.variables.items()]

    def create() -> None:
        api.create_repo(
            wish.repo_id,
            repo_type="space",
            private=spacefile.private,
            space_sdk=runs_on.sdk,
            # The free hardware is what a Space gets unasked, and its sleep cannot be chosen.
            space_hardware=None if runs_on.hardware == "cpu-basic" else SpaceHardware(runs_on.hardware),
            space_sleep_time=runs_on.sleep_after_s,
            space_secrets=secrets or None,
            space_variables=variables or None,
            space_volumes=wish.volumes or None,
        )

    kind = "private" if spacefile.private else "public"
    what = f"create the {kind} Space {wish.repo_id} (sdk {runs_on.sdk}, hardware {runs_on.hardware})"
    also = [f"secret {name}" for name in spacefile.secrets] + [f"variable {name}" for name in spacefile.variables]
    also += [f"{volume.source} at {volume.mount_path}" for volume in wish.volumes]
    step = Step(f"{what} with {', '.join(also)}" if also else what, create)
    return [*_bucket(api, wish), step, *_commit(api, wish, {})]


def _updating(api: HfApi, wish: Wish) -> list[Step]:
    spacefile, runs_on, repo_id = wish.spacefile, wish.spacefile.runs_on, wish.repo_id
    _require_secrets(wish, there=api.get_space_secrets(repo_id))
    steps: list[Step] = []
    for name, value in wish.secrets.items():
        # What the Hub holds cannot be read, so it cannot be compared.
        steps.append(Step(f"set secret {name}", _bound(api.add_space_secret, repo_id, name, value)))
    variables = api.get_space_variables(repo_id)
    for name, value in spacefile.variables.items():
        if name not in variables or variables[name].value != value:
            steps.append(Step(f"set variable {name} to {value}", _bound(api.add_space_variable, repo_id, name, value)))
    runtime = api.get_space_runtime(repo_id)
    hardware = runtime.requested_hardware or runtime.hardware or "cpu-basic"
    if hardware != runs_on.hardware:
        wanted = SpaceHardware(runs_on.hardware)
        request = _bound(api.request_space_hardware, repo_id, wanted, sleep_time=runs_on.sleep_after_s)
        steps.append(Step(f"change the hardware from {hardware} to {runs_on.hardware}", request))
    elif runs_on.sleep_after_s is not None and runtime.sleep_time != runs_on.sleep_after_s:
        sleep = _bound(api.set_space_sleep_time, repo_id, runs_on.sleep_after_s)
        steps.append(Step(f"have it sleep after {runs_on.sleep_after_s} s", sleep))
    mounted = runtime.volumes or []
    missing = [one for one in wish.volumes if (one.source, _DATA) not in {(v.source, v.mount_path) for v in mounted}]
    if missing:
        steps += _bucket(api, wish)
        volumes = [*(volume for volume in mounted if volume.mount_path != _DATA), *missing]
        mount = _bound(api.set_space_volumes, repo_id, volumes)
        steps.append(Step(f"mount {missing[0].source} at {_DATA}", mount))
    tree = api.list_repo_tree(repo_id, recursive=True, repo_type="space")
    return steps + _commit(api, wish, {file.path: file.blob_id for file in tree if isinstance(file, RepoFile)})


def _bound(call: Callable[..., object], *arguments: object, **named: object) -> Callable[[], object]:
    return lambda: call(*arguments, **named)


def _require_secrets(wish: Wish, there: Sequence[str] | Mapping[str, object]) -> None:
    missing = [name for name in wish.spacefile.secrets if name not in wish.secrets and name not in there]
    if missing:
        raise SpaceProblem(f"the Spacefile names the secret {missing[0]}, which your environment does not hold.")


def _bucket(api: HfApi, wish: Wish) -> list[Step]:
    return [
        Step(
            f"create the private bucket {volume.source}, unless it is there",
            _bound(api.create_bucket, volume.source, private=True, exist_ok=True),
        )
        for volume in wish.volumes
    ]


def _commit(api: HfApi, wish: Wish, there: Mapping[str, str]) -> list[Step]:
    """Return the one commit that makes the Space's files those that were built; none where they are already."""
    folder = wish.built.folder
    files = {file.as_posix(): folder / file for file in wish.built.files}
    changed = [name for name, path in files.items() if there.get(name) != _blob_id(path.read_bytes())]
    gone = sorted(there.keys() - files.keys() - _KEPT_FILES)
    if not changed and not gone:
        return []
    operations = [
        *(CommitOperationAdd(name, files[name]) for name in changed),
        *(CommitOperationDelete(name, is_folder=False) for name in gone),
    ]
    commit = _bound(api.create_commit, wish.repo_id, operations, commit_message=_MESSAGE, repo_type="space")
    what = f"commit {_counted(changed, 'file', there)}" if changed else "commit"
    return [Step(f"{what}{', removing ' + ', '.join(gone) if gone else ''}", commit)]


def _counted(changed: Sequence[str], noun: str, there: Mapping[str, str]) -> str:
    if not there:
        tops = sorted({PurePosixPath(name).parts[0] for name in changed})
        return f"{len(changed)} {noun}s ({', '.join(tops)})"
    return f"{len(changed)} changed {noun}{'' if len(changed) == 1 else 's'} ({', '.join(changed)})"


def _blob_id(content: bytes) -> str:
    """Return the name that git gives to a content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _warnings(api: HfApi, wish: Wish) -> Iterator[str]:
    if wish.spacefile.pays.who == "visitors":
        for name in sorted(api.get_space_secrets(wish.repo_id).keys() & set(KEYS)):
            yield f"The Space still holds the secret {name}; the studio does not use it, because visitors pay."
