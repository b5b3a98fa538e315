"""Tokens for SASL OAUTHBEARER, as Kafka's own login handlers get them: unsecured, from a file, or from a token endpoint."""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from kafka.net.sasl.oauth import AbstractTokenProvider

from exhume.capture.client_properties import ClientProperties, Secret
from exhume.codecs.volumes import reason
from exhume.errors import RequestError

_TIMEOUT_S = 10
#: A token is replaced so long before it expires.
_SPARE_S = 30
_UNSECURED = "unsecuredLoginStringClaim_"


class Tokens(AbstractTokenProvider):  # type: ignore[misc]
    """The source of tokens that these properties name."""

    def __init__(self, properties: ClientProperties) -> None:
        super().__init__()
        self._url = properties.token_endpoint_url
        self._login = properties.login
        self._scope = self._login.get("scope") or properties.token_scope
        self._token = Secret()
        self._expires_at = 0.0
        if self._url is None and f"{_UNSECURED}sub" not in self._login:
            raise RequestError(
                "OAUTHBEARER needs a token endpoint", remedy="Set sasl.oauthbearer.token.endpoint.url, with clientId and clientSecret"
            )

    def token(self) -> str:
        if time.time() >= self._expires_at:
            self._renew()
        return str(self._token)

    def _renew(self) -> None:
        if self._url is None:
            self._token, self._expires_at = self._unsecured(), time.time() + 3600 - _SPARE_S
        elif self._url.startswith("file:"):
            path = Path(urllib.parse.unquote(urllib.parse.urlsplit(self._url).path))
            try:
                self._token = Secret(path.read_text().strip())
            except OSError as error:
                raise RequestError(f"{path}: the token cannot be read: {reason(error)}") from error
        else:
            answer = self._ask(self._url)
            self._token = Secret(answer["access_token"])
            self._expires_at = time.time() + float(answer.get("expires_in", 0)) - _SPARE_S

    def _unsecured(self) -> Secret:
        """A token without signature, which brokers accept in tests. Source: OAuthBearerUnsecuredLoginCallbackHandler."""
        now = time.time()
        claims = {name.removeprefix(_UNSECURED): str(value) for name, value in self._login.items() if name.startswith(_UNSECURED)}
        parts: list[dict[str, object]] = [{"alg": "none"}, {**claims, "iat": now, "exp": now + 3600}]
        return Secret(".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts) + ".")

    def _ask(self, url: str) -> dict[str, str]:
        if not url.startswith(("https://", "http://")):
            raise RequestError("the token endpoint must be an http, https or file URL", remedy="Check sasl.oauthbearer.token.endpoint.url")
        form = {"grant_type": "client_credentials"} | ({"scope": str(self._scope)} if self._scope else {})
        login = f"{self._login.get('clientId', '')}:{self._login.get('clientSecret', '')}"
        request = urllib.request.Request(  # noqa: S310  # checked above
            url,
            data=urllib.parse.urlencode(form).encode(),
            headers={"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}", "Accept": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:  # noqa: S310  # checked above
                answer = json.load(response)
        except (OSError, ValueError, urllib.error.URLError) as error:
            status = f" with status {error.code}" if isinstance(error, urllib.error.HTTPError) else ""
            remedy = "Check its URL, clientId and clientSecret"
            raise RequestError(f"the token endpoint {urllib.parse.urlsplit(url).hostname} refused{status}", remedy=remedy) from None
        if not isinstance(answer, dict) or not isinstance(answer.get("access_token"), str):
            raise RequestError("the answer of the token endpoint has no access_token", remedy="Check sasl.oauthbearer.token.endpoint.url")
        return answer
