"""Java properties of Kafka's own tools, as settings; secrets appear nowhere."""

from __future__ import annotations

import datetime
import ssl
import traceback
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from exhume.capture.client_properties import ClientProperties, read_client_properties
from exhume.capture.tokens import Tokens
from exhume.errors import RequestError

SCRAM = r"""
# a client of the audit team
security.protocol = SASL_PLAINTEXT
sasl.mechanism: SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
    username="audit" \
    password="a \\"b\\" ;=c";
request.timeout.ms=12000
client.id=audit-1
"""


def read(tmp_path: Path, text: str) -> ClientProperties:
    path = tmp_path / "client.properties"
    path.write_text(text)
    return read_client_properties(path)


def test_scram_over_several_lines(tmp_path: Path) -> None:
    properties = read(tmp_path, SCRAM)
    assert (properties.security_protocol, properties.mechanism) == ("SASL_PLAINTEXT", "SCRAM-SHA-512")
    assert properties.login == {"username": "audit", "password": 'a "b" ;=c'}
    assert (properties.request_timeout_ms, properties.client_id) == (12000, "audit-1")


def test_secrets_are_in_no_representation_and_no_traceback(tmp_path: Path) -> None:
    properties = read(tmp_path, SCRAM)
    assert "b" not in repr(properties.login["password"])
    assert "audit team" not in repr(properties)
    assert '"b"' not in repr(properties)
    secret = "x" * 40
    with pytest.raises(RequestError) as caught:
        read(tmp_path, f"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={secret}")
    assert secret not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("security.protocol=SASL", "no security.protocol SASL"),
        ("security.protocol=SASL_SSL", "sasl.mechanism GSSAPI"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=AWS_MSK_IAM", "sasl.mechanism AWS_MSK_IAM"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", "sasl.jaas.config is missing"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=a.B required username=x;", "has no password"),
        ("security.protocol=SSL\nssl.truststore.location=/nowhere/trust.p12", "/nowhere/trust.p12: cannot be read"),
        ("config.providers=file", "config.providers is set"),
        ("request.timeout.ms=soon", "request.timeout.ms is not a number"),
    ],
)
def test_what_has_no_support_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        read(tmp_path, text)
    assert caught.value.remedy


def test_without_a_file_connections_are_plain() -> None:
    assert read_client_properties(None) == ClientProperties()


def authority() -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "exhume test")])
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(7)
    builder = builder.not_valid_before(now).not_valid_after(now.replace(year=2060))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return key, builder.sign(key, hashes.SHA256())


def trusted(context: ssl.SSLContext | None) -> int:
    assert context is not None
    return context.cert_store_stats()["x509_ca"]


@pytest.mark.parametrize("kind", ["pkcs12", "pem file", "pem", "pem on one line"])
def test_a_truststore(tmp_path: Path, kind: str) -> None:
    _, certificate = authority()
    pem = certificate.public_bytes(serialization.Encoding.PEM).decode()
    (tmp_path / "trust.pem").write_text(pem)
    store = pkcs12.serialize_java_truststore(
        [pkcs12.PKCS12Certificate(certificate, b"ca")], serialization.BestAvailableEncryption(b"secret")
    )
    (tmp_path / "trust.p12").write_bytes(store)
    settings = {
        "pkcs12": f"ssl.truststore.location={tmp_path}/trust.p12\nssl.truststore.password=secret",
        "pem file": f"ssl.truststore.location={tmp_path}/trust.pem\nssl.truststore.type=PEM",
        "pem": "ssl.truststore.type=PEM\nssl.truststore.certificates=" + pem.strip().replace("\n", "\\n"),
        "pem on one line": "ssl.truststore.type=PEM\nssl.truststore.certificates=" + pem.strip().replace("\n", " "),
    }
    assert trusted(read(tmp_path, f"security.protocol=SSL\n{settings[kind]}").ssl_context) == 1


@pytest.mark.parametrize("kind", ["pkcs12", "pem file", "pem"])
def test_a_keystore(tmp_path: Path, kind: str) -> None:
    key, certificate = authority()
    chain = certificate.public_bytes(serialization.Encoding.PEM).decode()
    locked = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")
    ).decode()
    (tmp_path / "key.pem").write_text(locked + chain)
    (tmp_path / "key.p12").write_bytes(
        pkcs12.serialize_key_and_certificates(b"me", key, certificate, None, serialization.BestAvailableEncryption(b"secret"))
    )
    settings = {
        "pkcs12": f"ssl.keystore.location={tmp_path}/key.p12\nssl.keystore.password=secret",
        "pem file": f"ssl.keystore.location={tmp_path}/key.pem\nssl.key.password=secret",
        "pem": "ssl.keystore.key={}\nssl.keystore.certificate.chain={}\nssl.key.password=secret".format(
            locked.replace("\n", "\\n"), chain.replace("\n", "\\n")
        ),
    }
    assert read(tmp_path, f"security.protocol=SSL\n{settings[kind]}").ssl_context is not None
    with pytest.raises(RequestError):
        read(tmp_path, f"security.protocol=SSL\n{settings[kind].replace('=secret', '=wrong')}")


def test_an_old_java_keystore_names_how_to_convert_it(tmp_path: Path) -> None:
    (tmp_path / "trust.jks").write_bytes(b"\xfe\xed\xfe\xed" + bytes(100))
    with pytest.raises(RequestError, match="JKS") as caught:
        read(tmp_path, f"security.protocol=SSL\nssl.truststore.location={tmp_path}/trust.jks\nssl.truststore.password=secret")
    assert "keytool -importkeystore" in str(caught.value.remedy)


def test_an_empty_identification_algorithm_turns_the_check_of_the_name_off(tmp_path: Path) -> None:
    assert read(tmp_path, "security.protocol=SSL").ssl_context.check_hostname  # type: ignore[union-attr]
    off = read(tmp_path, "security.protocol=SSL\nssl.endpoint.identification.algorithm=").ssl_context
    assert off is not None
    assert not off.check_hostname
    assert off.verify_mode is ssl.CERT_REQUIRED


OAUTH = """security.protocol=SASL_PLAINTEXT
sasl.mechanism=OAUTHBEARER
sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"""


def test_tokens_come_from_the_claims_or_from_a_file(tmp_path: Path) -> None:
    unsecured = Tokens(read(tmp_path, f'{OAUTH} unsecuredLoginStringClaim_sub="audit";'))
    assert unsecured.token().count(".") == 2
    (tmp_path / "token").write_text("abc.def.ghi\n")
    from_file = Tokens(read(tmp_path, f"{OAUTH} ;\nsasl.oauthbearer.token.endpoint.url=file://{tmp_path}/token"))
    assert from_file.token() == "abc.def.ghi"
    with pytest.raises(RequestError, match="token endpoint"):
        Tokens(read(tmp_path, f"{OAUTH} ;"))
