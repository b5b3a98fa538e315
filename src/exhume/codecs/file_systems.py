"""Open the file system of a URI with `pyarrow.fs`, and explain its errors.

Endpoint, region and credentials are taken from the options of the URI, then from the environment as the clients of each store read it: for
S3 `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`, `AWS_REGION`, `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, profiles
and the metadata of the machine; for Google Cloud Storage `GOOGLE_APPLICATION_CREDENTIALS`; for Azure `AZURE_STORAGE_ACCOUNT`,
`AZURE_STORAGE_KEY`, `AZURE_STORAGE_SAS_TOKEN`, or what Azure's default credential finds; for HDFS `JAVA_HOME`, `HADOOP_HOME`, `CLASSPATH`
and the configuration of Hadoop.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyarrow import fs

from exhume.codecs.uris import Uri
from exhume.errors import EvidenceError, RequestError

#: Schemes of web servers, whose options are for the server.
WEB = ("https", "http")
_AZURE_VARIABLES = {
    "account_name": "AZURE_STORAGE_ACCOUNT",
    "account_key": "AZURE_STORAGE_KEY",
    "sas_token": "AZURE_STORAGE_SAS_TOKEN",
}
_TRUTHS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
#: By default Google's client retries for 15 minutes.
_GS_RETRY_LIMIT = timedelta(seconds=60)


def _truth(text: str) -> bool:
    return _TRUTHS[text.lower()]


def _seconds(text: str) -> timedelta:
    return timedelta(seconds=float(text))


#: The options of each file system, those of its class in `pyarrow.fs`, with the function that parses each value.
OPTIONS: Mapping[str, Mapping[str, Callable[[str], Any]]] = {
    "s3": {
        "access_key": str,
        "secret_key": str,
        "session_token": str,
        "anonymous": _truth,
        "role_arn": str,
        "session_name": str,
        "external_id": str,
        "region": str,
        "scheme": str,
        "endpoint_override": str,
        "force_virtual_addressing": _truth,
        "connect_timeout": float,
        "request_timeout": float,
    },
    "gs": {
        "anonymous": _truth,
        "target_service_account": str,
        "project_id": str,
        "scheme": str,
        "endpoint_override": str,
        "retry_time_limit": _seconds,
    },
    "az": {
        "account_name": str,
        "account_key": str,
        "sas_token": str,
        "tenant_id": str,
        "client_id": str,
        "client_secret": str,
        "blob_storage_authority": str,
        "blob_storage_scheme": str,
        "dfs_storage_authority": str,
        "dfs_storage_scheme": str,
    },
    "hdfs": {"user": str, "kerb_ticket": str, "buffer_size": int},
    "viewfs": {"user": str, "kerb_ticket": str, "buffer_size": int},
}


def file_system(uri: Uri) -> fs.FileSystem:
    """Return the file system of this URI; the same object for all URIs with the same host and options.

    Raises:
        RequestError: the file system does not have the option, or the option does not accept the value.
        EvidenceError: the file system cannot be reached.
    """
    root = replace(uri, path="")
    try:
        return _file_system(root)
    except (OSError, pa.ArrowException) as error:
        raise refused(str(uri), error) from error


def path_in(uri: Uri, path: str = "") -> str:
    """Return the name that the file system has for this path below a URI."""
    inside = uri.at(path).path
    if uri.scheme in ("hdfs", "viewfs"):
        return f"/{inside}"
    return f"{uri.host}/{inside}".rstrip("/")


@lru_cache(maxsize=64)
def _file_system(root: Uri) -> fs.FileSystem:
    if root.scheme in WEB:
        # The options are those of the server.
        from exhume.codecs.web_files import web_file_system

        return web_file_system(root)
    options = _read_options(root)
    match root.scheme:
        case "s3":
            return _s3(root, options)
        case "gs":
            if root.user == "anonymous":
                options.setdefault("anonymous", True)
            return fs.GcsFileSystem(**{"retry_time_limit": _GS_RETRY_LIMIT} | options)
        case "az":
            return _azure(options)
        case _:
            host, _, port = root.host.partition(":")
            default = root.scheme if root.scheme == "viewfs" else "default"
            address = f"viewfs://{host}" if root.scheme == "viewfs" and host else host or default
            return fs.HadoopFileSystem(address, int(port) if port.isdigit() else 0, **{"user": root.user} | options)


def _s3(root: Uri, options: dict[str, Any]) -> fs.FileSystem:
    if root.user is not None:
        options = {"access_key": root.user, "secret_key": root.password} | options
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint:
        options.setdefault("endpoint_override", endpoint)
    if "region" not in options:
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        # Other stores accept any region; Amazon only accepts the region of the bucket.
        options["region"] = region or ("us-east-1" if "endpoint_override" in options else fs.resolve_s3_region(root.host))
    return fs.S3FileSystem(**options)


def _azure(options: dict[str, Any]) -> fs.FileSystem:
    for name, variable in _AZURE_VARIABLES.items():
        # A key and a token exclude each other.
        if os.environ.get(variable) and not (name != "account_name" and {"account_key", "sas_token", "client_id"} & options.keys()):
            options.setdefault(name, os.environ[variable])
    if "account_name" not in options:
        raise RequestError(
            "az:// needs a storage account",
            remedy="Write abfss://container@account.dfs.core.windows.net/prefix, or set AZURE_STORAGE_ACCOUNT or the option account_name",
        )
    return fs.AzureFileSystem(**options)


def _read_options(root: Uri) -> dict[str, Any]:
    known = OPTIONS[root.scheme]
    options = {}
    for name, text in root.options:
        if name not in known:
            raise RequestError(f"{root.scheme}:// has no option {name!r}", remedy=f"Known are {', '.join(known)}")
        try:
            options[name] = known[name](text)
        except (KeyError, ValueError):
            raise RequestError(
                f"the option {name} of {root.scheme}:// cannot be {text!r}", remedy="See docs/uris.md for what it takes"
            ) from None
    return options


def refused(shown: str, error: Exception, byte_position: int | None = None) -> EvidenceError:
    """Return the error for a request that the file system refused, with a remedy."""
    text = " ".join(str(error).split())
    code = _CODE.search(text)
    name = (code["code"] if code else "").upper()
    if not name and isinstance(error, FileNotFoundError):
        name = "NOT_FOUND"
    elif not name and isinstance(error, PermissionError):
        name = "ACCESS_DENIED"
    elif not name and isinstance(error, ConnectionError):
        name = "NETWORK_CONNECTION"
    elif "libjvm" in text or "libhdfs" in text:
        name = "NO_HADOOP"
    why, remedy = next(((why, remedy) for names, why, remedy in _MEANINGS if name in names), (None, _RETRY))
    said = (code["text"] if code else text).strip().rstrip(".")
    if len(said) > _LONGEST_CAUSE:
        # Hadoop names every place where it looked for Java.
        said = f"{said[:_LONGEST_CAUSE].rpartition(' ')[0]} …"
    message = f"{why} ({said})" if why and said else why or said
    return EvidenceError(f"cannot be read: {message}", path=shown, byte_position=byte_position, remedy=remedy)


#: The code and the text in the error messages of the clients of Amazon, Google and Azure.
_CODE = re.compile(
    r"(?:AWS Error |google::cloud::Status\(|Azure Error: \[)(?P<code>[A-Za-z_]+)\]?(?: during \w+ operation)?:? ?(?P<text>[^({]*)"
)
#: The most characters of an error of a client: an error is one line.
_LONGEST_CAUSE = 160
_RETRY = "Try again; if the error remains, ask the operator of the store"
_CREDENTIALS = "Check the credentials (environment, profile, or the options of the URI): they must allow listing and reading objects"
#: (codes, meaning, remedy)
_MEANINGS = (
    (
        ("NO_SUCH_BUCKET", "CONTAINERNOTFOUND"),
        "the bucket does not exist",
        "Check the bucket's name and the endpoint (endpoint_override, AWS_ENDPOINT_URL)",
    ),
    (("NOT_FOUND", "NO_SUCH_KEY", "RESOURCE_NOT_FOUND"), "nothing exists at this path", "Check the bucket, the prefix and the endpoint"),
    (
        (
            "ACCESS_DENIED",
            "PERMISSION_DENIED",
            "UNAUTHENTICATED",
            "INVALID_ACCESS_KEY_ID",
            "INVALID_CLIENT_TOKEN_ID",
            "SIGNATURE_DOES_NOT_MATCH",
            "MISSING_AUTHENTICATION_TOKEN",
            "UNRECOGNIZED_CLIENT",
            "EXPIRED_TOKEN",
            "AUTHORIZATIONFAILURE",
            "AUTHENTICATIONFAILED",
            "AUTHORIZATIONPERMISSIONMISMATCH",
        ),
        "permission denied",
        _CREDENTIALS,
    ),
    (
        ("NETWORK_CONNECTION", "UNAVAILABLE", "REQUEST_TIMEOUT", "DEADLINE_EXCEEDED"),
        "the connection failed",
        "Check the endpoint and the network, and run it again",
    ),
    (
        ("NO_HADOOP",),
        "the Hadoop client is missing",
        "Install Java and Hadoop; set JAVA_HOME, HADOOP_HOME, and CLASSPATH to the output of `hadoop classpath --glob`",
    ),
)
