"""`--command-config`: the Java properties with which Kafka's own tools connect, as settings for the client library.

Secrets stay in `Secret` values, whose text is shown nowhere: not in a representation, so not in a traceback either.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from exhume.codecs.checkpoints import read_properties
from exhume.codecs.volumes import reason, remedy
from exhume.errors import EvidenceError, RequestError

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
#: Properties that load Java classes, which Python cannot run. Only their Kafka defaults work.
_JAVA_ONLY = {
    "config.providers": "exhume does not run config providers: write the values themselves",
    "ssl.engine.factory.class": "exhume does not run SSL engines: remove the property",
    "security.providers": "exhume does not run security providers: remove the property",
    "sasl.client.callback.handler.class": "exhume runs no callback handler: write user name and password into sasl.jaas.config",
}
_JAAS = re.compile(r"\s*(?P<module>[\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(?P<options>.*?);?\s*", re.DOTALL | re.IGNORECASE)
_OPTION = re.compile(r"""([\w.\-]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;"']+))""", re.DOTALL)


class Secret(str):
    """A text that no message and no traceback shows."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<secret>"


@dataclass(frozen=True, slots=True)
class ClientProperties:
    """How to connect. `login` are the options of the JAAS entry; all of them are secret."""

    security_protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    login: Mapping[str, Secret] = field(default_factory=dict, repr=False)
    client_id: str | None = None
    request_timeout_ms: int | None = None
    ssl_context: ssl.SSLContext | None = None
    token_endpoint_url: str | None = None
    token_scope: str | None = None


def read_client_properties(path: Path | None) -> ClientProperties:
    """Read a file of client properties; without a file, connections are neither encrypted nor authenticated.

    Raises:
        RequestError: the file, or a file that it names, cannot be read; or a property has a value that exhume has no support for.
    """
    if path is None:
        return ClientProperties()
    try:
        lines = read_properties(path.read_bytes())
    except OSError as error:
        raise RequestError(f"{path}: cannot be read: {reason(error)}", remedy=remedy(error)) from error
    except EvidenceError as error:
        raise RequestError(f"{path}: {error.message}", remedy="Give a file of Java properties, such as client.properties") from None
    values = {key: Secret(line.text.strip()) for key, line in lines.items()}
    try:
        return _properties(values)
    except RequestError as error:
        raise RequestError(f"{path}: {error.message}", remedy=error.remedy) from None


def _properties(values: Mapping[str, Secret]) -> ClientProperties:
    for key, what_to_do in _JAVA_ONLY.items():
        if values.get(key):
            raise RequestError(f"{key} is set", remedy=what_to_do)
    protocol = str(values.get("security.protocol") or "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise RequestError(f"there is no security.protocol {protocol}", remedy=f"Choose one of {', '.join(_PROTOCOLS)}")
    mechanism, login = None, {}
    if protocol.startswith("SASL"):
        mechanism = str(values.get("sasl.mechanism") or "GSSAPI")
        if mechanism not in MECHANISMS:
            what_to_do = f"Use a listener with one of {', '.join(MECHANISMS)}"
            raise RequestError(f"exhume cannot authenticate with sasl.mechanism {mechanism}", remedy=what_to_do)
        login = _login(values.get("sasl.jaas.config"), mechanism)
    context = None
    if protocol.endswith("SSL"):
        from exhume.capture.certificates import ssl_context

        context = ssl_context(values)
    return ClientProperties(
        security_protocol=protocol,
        mechanism=mechanism,
        login=login,
        client_id=str(values["client.id"]) if values.get("client.id") else None,
        request_timeout_ms=_milliseconds(values, "request.timeout.ms"),
        ssl_context=context,
        token_endpoint_url=str(values["sasl.oauthbearer.token.endpoint.url"])
        if values.get("sasl.oauthbearer.token.endpoint.url")
        else None,
        token_scope=str(values["sasl.oauthbearer.scope"]) if values.get("sasl.oauthbearer.scope") else None,
    )


def _login(text: Secret | None, mechanism: str) -> dict[str, Secret]:
    form = 'sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="NAME" password="PASSWORD";'
    if not text:
        raise RequestError(f"sasl.jaas.config is missing, which {mechanism} needs", remedy=f"Write for example {form}")
    match = _JAAS.fullmatch(text)
    if match is None:
        raise RequestError("sasl.jaas.config has not the form of a login module with options", remedy=f"Write for example {form}")
    options = {
        found[1]: Secret(re.sub(r"\\(.)", r"\1", next(part for part in found.groups()[1:] if part is not None)))
        for found in _OPTION.finditer(match["options"])
    }
    if mechanism != "OAUTHBEARER":
        missing = [name for name in ("username", "password") if name not in options]
        if missing:
            raise RequestError(f"sasl.jaas.config has no {' and no '.join(missing)}", remedy=f"Write for example {form}")
    return options


def _milliseconds(values: Mapping[str, Secret], key: str) -> int | None:
    text = values.get(key)
    if not text:
        return None
    if not text.isascii() or not text.isdigit():
        raise RequestError(f"{key} is not a number of milliseconds", remedy="Write a number, such as 30000")
    return int(text)
