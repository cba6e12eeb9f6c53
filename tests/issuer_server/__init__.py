"""An OpenID Connect issuer of the tests' own, as strict as Hugging Face's: a code is good once, for whoever can answer
its challenge."""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.support.threaded_servers import Handler, ThreadedServer

CLIENT_ID = "client-of-the-space"
CLIENT_SECRET = "secret-" + "of-the-space"


@dataclass(frozen=True)
class _Grant:
    """What a code stands for: who allowed it, and what the program said when it asked."""

    account: dict[str, str]
    redirect_uri: str
    challenge: str
    nonce: str


class _Handler(Handler):
    owner: ClassVar[IssuerServer]

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        match place.path:
            case "/.well-known/openid-configuration":
                self.answer(200, self.owner.metadata())
            case "/oauth/jwks":
                self.answer(200, {"keys": [self.owner.key.as_dict(private=False)]})
            case "/oauth/authorize":
                self.answer(302, {}, Location=self.owner.authorize(_first(place.query)))
            case _:
                self.answer(404, {"error": "not_found"})

    def do_POST(self) -> None:
        tokens = self.owner.token(_first(self.body().decode()), self.headers.get("authorization", ""))
        self.answer(*((200, tokens) if tokens is not None else (400, {"error": "invalid_grant"})))


class IssuerServer(ThreadedServer):
    """An issuer with one person at its page, who allows whatever is asked, for as long as a `with` block lasts.

    `url` is the address for OPENID_PROVIDER_URL, `account` who that person is, `signs_with` the key of its ID tokens
    (None: its own), `violations` what a program did that the issuer does not take.
    """

    handler = _Handler

    def __init__(self) -> None:
        self.account = {"sub": "62f0c0ffee", "preferred_username": "ada", "name": "Ada L."}
        self.violations: list[str] = []
        self.key = RSAKey.generate_key(2048, parameters={"kid": "one", "use": "sig", "alg": "RS256"})
        self.signs_with: RSAKey | None = None
        self._grants: dict[str, _Grant] = {}

    def metadata(self) -> dict[str, Any]:
        """Return what is found at the well-known place."""
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/oauth/authorize",
            "token_endpoint": f"{self.url}/oauth/token",
            "userinfo_endpoint": f"{self.url}/oauth/userinfo",
            "jwks_uri": f"{self.url}/oauth/jwks",
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """Return where the browser goes back to, with a code."""
        wanted = {"response_type": "code", "client_id": CLIENT_ID, "code_challenge_method": "S256"}
        for name, value in wanted.items():
            self._expect(asked.get(name) == value, f"{name} is {asked.get(name)!r}")
        for name in ("state", "nonce", "code_challenge", "redirect_uri"):
            self._expect(bool(asked.get(name)), f"{name} is missing")
        self._expect(set(asked.get("scope", "").split()) == {"openid", "profile"}, "it asks for other rights")
        code = secrets.token_urlsafe(16)
        self._grants[code] = _Grant(self.account, asked["redirect_uri"], asked["code_challenge"], asked["nonce"])
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, asked: dict[str, str], authorization: str) -> dict[str, Any] | None:
        """Return the tokens for a code, None when it is refused."""
        basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        self._expect(authorization == f"Basic {basic}", "the program does not say who it is")
        grant = self._grants.pop(asked.get("code", ""), None)
        digest = hashlib.sha256(asked.get("code_verifier", "").encode()).digest()
        is_answered = grant is not None and grant.challenge == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if grant is None or not is_answered or asked.get("redirect_uri") != grant.redirect_uri:
            return None
        now = int(time.time())
        times = {"iat": now, "exp": now + 300}
        claims = {"iss": self.url, "aud": CLIENT_ID, "nonce": grant.nonce, **times, **grant.account}
        signed = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.signs_with or self.key)
        return {"access_token": "hf_oauth_" + "x" * 20, "token_type": "bearer", "expires_in": 3600, "id_token": signed}

    def _expect(self, is_so: bool, otherwise: str) -> None:
        if not is_so:
            self.violations.append(otherwise)


def _first(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}
