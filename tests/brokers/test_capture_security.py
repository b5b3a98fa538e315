"""Capturing over TLS with SCRAM, and the errors of a client without permissions."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from cryptography.x509.oid import NameOID
from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

import exhume

from .broker import Broker, _free_ports
from .committing import commit
from .test_capture import capture, listed_offsets, require_same_bytes, running, server

pytestmark = [pytest.mark.broker, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

SECRET = "correct horse; battery"
STORE = "stored"


def write_stores(directory: Path) -> None:
    """A key for 127.0.0.1 that signs itself, and a truststore with its certificate."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(11)
    builder = builder.not_valid_before(start).not_valid_after(start.replace(year=2060))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    certificate = builder.sign(key, hashes.SHA256())
    locked = BestAvailableEncryption(STORE.encode())
    (directory / "broker.p12").write_bytes(pkcs12.serialize_key_and_certificates(b"broker", key, certificate, None, locked))
    (directory / "trust.p12").write_bytes(pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(certificate, b"ca")], locked))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, int, Path]]:
    """A broker with a second listener for SASL_SSL, its port, and the directory of the stores."""
    directory = tmp_path_factory.mktemp("secured")
    write_stores(directory)
    (port,) = _free_ports(1)
    with running("4.4.0", directory, lambda broker: _settings(broker, port, directory)) as broker:
        admin: Any = KafkaAdminClient(bootstrap_servers=server(broker))
        admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(user, ScramMechanism.SCRAM_SHA_512, SECRET) for user in ("auditor", "guest")]
        )
        admin.create_acls(_acls())
        admin.close()
        commit(server(broker), "billing", 20)
        yield broker, port, directory


def _settings(broker: Broker, port: int, directory: Path) -> str:
    plain, other = broker.port, broker._other_port
    return f"""
listeners=PLAINTEXT://127.0.0.1:{plain},CONTROLLER://127.0.0.1:{other},SECURE://127.0.0.1:{port}
advertised.listeners=PLAINTEXT://127.0.0.1:{plain},SECURE://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL
sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.ssl.keystore.type=PKCS12
listener.name.secure.ssl.keystore.location={directory}/broker.p12
listener.name.secure.ssl.keystore.password={STORE}
listener.name.secure.ssl.key.password={STORE}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""


def _acls() -> list[Any]:
    def allow(operation: Any, kind: Any, name: str) -> Any:
        return ACL("User:auditor", "*", operation, ACLPermissionType.ALLOW, ResourcePattern(kind, name))

    return [
        allow(ACLOperation.READ, ResourceType.TOPIC, "__consumer_offsets"),
        allow(ACLOperation.DESCRIBE, ResourceType.TOPIC, "__consumer_offsets"),
        allow(ACLOperation.DESCRIBE, ResourceType.GROUP, "*"),
    ]


def properties(directory: Path, user: str, password: str) -> str:
    path = directory / f"{user}.properties"
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    path.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
        f'sasl.jaas.config={module} required username="{user}" password="{password}";\n'
        f"ssl.truststore.location={directory}/trust.p12\nssl.truststore.password={STORE}\n"
    )
    return str(path)


def test_a_capture_over_tls_with_scram(secured: tuple[Broker, int, Path], tmp_path: Path) -> None:
    broker, port, directory = secured
    done = capture(f"127.0.0.1:{port}", tmp_path / "evidence", "--command-config", properties(directory, "auditor", SECRET))
    assert done.returncode == 0, done.stderr
    require_same_bytes(broker, tmp_path / "evidence")
    # The auditor may not see the data topic: the broker hides its offsets, which does not mean that the log is wrong.
    assert listed_offsets(tmp_path / "evidence") == {}
    with exhume.open(tmp_path / "evidence") as topic:
        assert [finding.code for finding in topic.diagnose(codes=["IC-22"]) if finding.confidence != "undecidable"] == []
    for path in (tmp_path / "evidence").iterdir():
        assert path.is_dir() or SECRET not in path.read_text()


def test_a_client_without_an_acl_learns_which_one_it_needs(secured: tuple[Broker, int, Path], tmp_path: Path) -> None:
    _, port, directory = secured
    done = capture(f"127.0.0.1:{port}", tmp_path / "evidence", "--command-config", properties(directory, "guest", SECRET))
    assert done.returncode == 3
    assert "needs the ACL READ and DESCRIBE on topic __consumer_offsets" in done.stderr
    assert "kafka-acls.sh --add" in done.stderr


def test_a_wrong_password_is_named_and_not_shown(secured: tuple[Broker, int, Path], tmp_path: Path) -> None:
    _, port, directory = secured
    done = capture(
        f"127.0.0.1:{port}", tmp_path / "evidence", "--command-config", properties(directory, "auditor", "wrong horse"), "--timeout", "5s"
    )
    assert done.returncode == 3
    assert "refuse the login" in done.stderr
    assert "wrong horse" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_plain_client_of_a_tls_listener_learns_what_to_check(secured: tuple[Broker, int, Path], tmp_path: Path) -> None:
    _, port, _ = secured
    done = capture(f"127.0.0.1:{port}", tmp_path / "evidence", "--timeout", "3s")
    assert done.returncode == 3
    assert "security.protocol" in done.stderr
