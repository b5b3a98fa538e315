"""Certificates and keys of `client.properties`: PEM texts, PEM files and PKCS#12 stores, as a context for TLS."""

from __future__ import annotations

import secrets
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from exhume.codecs.volumes import reason, remedy
from exhume.errors import RequestError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates

    from exhume.capture.client_properties import Secret

_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_CONVERT = "Convert it: keytool -importkeystore -srckeystore OLD.jks -destkeystore NEW.p12 -deststoretype PKCS12"


def ssl_context(values: Mapping[str, Secret]) -> ssl.SSLContext:
    """Return the TLS settings of these properties.

    Raises:
        RequestError: a store cannot be read, its password is wrong, or its format is one that Python cannot read.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Kafka's own tools verify the name unless the algorithm is empty.
    context.check_hostname = values.get("ssl.endpoint.identification.algorithm", "https") != ""
    try:
        _trust(context, values)
        _identify(context, values)
    except (ssl.SSLError, ValueError) as error:
        # The text of these errors names the format, not the content.
        raise RequestError(f"a certificate or key cannot be used: {error}", remedy="Check the files and passwords of ssl.*") from None
    return context


def _trust(context: ssl.SSLContext, values: Mapping[str, Secret]) -> None:
    pem = values.get("ssl.truststore.certificates")
    location = values.get("ssl.truststore.location")
    if pem:
        context.load_verify_locations(cadata=_pem(pem))
    elif not location:
        context.load_default_certs()
    elif _is_pem(values.get("ssl.truststore.type"), _read(location)):
        context.load_verify_locations(cadata=_read(location).decode("ascii", "ignore"))
    else:
        from cryptography.hazmat.primitives.serialization import Encoding

        store = _store(location, values.get("ssl.truststore.password"), "ssl.truststore")
        found = [item.certificate for item in (store.cert, *store.additional_certs) if item is not None]
        if not found:
            raise RequestError(f"{location}: the truststore has no certificate", remedy="Give the store that Kafka's own tools use")
        context.load_verify_locations(cadata="".join(one.public_bytes(Encoding.PEM).decode() for one in found))


def _identify(context: ssl.SSLContext, values: Mapping[str, Secret]) -> None:
    location = values.get("ssl.keystore.location")
    key_password = values.get("ssl.key.password") or values.get("ssl.keystore.password")
    if values.get("ssl.keystore.key"):
        _load_chain(context, f"{_pem(values['ssl.keystore.key'])}\n{_pem(values['ssl.keystore.certificate.chain'])}".encode(), key_password)
    elif location and _is_pem(values.get("ssl.keystore.type"), _read(location)):
        _load_chain(context, _read(location), values.get("ssl.key.password"))
    elif location:
        from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

        store = _store(location, values.get("ssl.keystore.password"), "ssl.keystore")
        if store.key is None or store.cert is None:
            raise RequestError(
                f"{location}: the keystore has no key with a certificate", remedy="Give the store that Kafka's own tools use"
            )
        # The context loads keys from files only: the file has a password that nothing else knows.
        password = secrets.token_hex(16)
        key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))
        chain = [store.cert, *store.additional_certs]
        _load_chain(context, key + b"".join(item.certificate.public_bytes(Encoding.PEM) for item in chain), password)


def _load_chain(context: ssl.SSLContext, pem: bytes, password: str | None) -> None:
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name, password=None if password is None else str(password))


def _store(location: str, password: str | None, prefix: str) -> PKCS12KeyAndCertificates:
    data = _read(location)
    if data.startswith(_JKS_MAGIC):
        raise RequestError(f"{location}: exhume reads PKCS#12 and PEM, and this is a keystore in the old JKS format", remedy=_CONVERT)
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        what_to_do = f"Check {prefix}.password and {prefix}.type"
        raise RequestError(f"{location}: not a PKCS#12 store, or the password is wrong", remedy=what_to_do) from None


def _read(location: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise RequestError(f"{location}: cannot be read: {reason(error)}", remedy=remedy(error)) from error


def _is_pem(store_type: str | None, data: bytes) -> bool:
    return (store_type or "").upper() == "PEM" or b"-----BEGIN " in data[:4096]


def _pem(text: str) -> str:
    """PEM text of a property: on one line its parts have blanks between them, as Kafka permits."""
    head, _, rest = text.partition("-----BEGIN ")
    if "\n" in text or not rest:
        return text
    label, _, rest = rest.partition("-----")
    body, _, tail = rest.partition("-----END ")
    lines = "\n".join(body.split())
    return f"{head}-----BEGIN {label}-----\n{lines}\n-----END {label}-----\n" + _pem(tail.partition("-----")[2].strip())
