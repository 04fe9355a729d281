"""RavenDB imports outputs.

`make test-datasets` installs its server: the packages pyravendb-embedded (4.1), dotnetcore2, and
psycopg2-binary, whose wheels contain OpenSSL 1.1, which .NET Core 2 needs.
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.places import DUMPS, SAMPLES

import so2docs

pytestmark = [pytest.mark.readers, pytest.mark.long]
PACKAGES = ("pyravendb_embedded", "dotnetcore2", "psycopg2_binary.libs")
BOUNDARY = "the-end-of-a-part"
Call = Callable[..., Any]


def _installed() -> list[Path]:
    """Return the folders of the packages; skip the test if one of them is missing."""
    found = importlib.util.find_spec(PACKAGES[0])
    if found is None or found.origin is None:
        pytest.skip("the packages of RavenDB's server are not installed")
    packages = Path(found.origin).parents[1]
    folders = [packages / name for name in PACKAGES]
    for folder in folders:
        if not folder.is_dir():
            pytest.skip(f"{folder.name} is not installed")
    return folders


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Call]:
    """Start a server, and yield a function that calls a path of its API."""
    raven, dotnet, openssl = _installed()
    folder = tmp_path_factory.mktemp("ravendb")
    for library in openssl.iterdir():  # Link each both by the name of the wheel and by its own.
        for name in {library.name, f"{library.name.partition('-')[0]}.so.1.1"}:
            (folder / name).symlink_to(library)
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    settings = {
        "ServerUrl": url,
        "DataDir": str(folder / "data"),
        "Setup.Mode": "None",
        "License.Eula.Accepted": "true",
        "Security.UnsecuredAccessAllowed": "Local",
    }
    command = [
        str(dotnet / "bin" / "dotnet"),
        str(raven / "RavenDBServer" / "Raven.Server.dll"),
        *(f"--{name}={value}" for name, value in settings.items()),
        "--non-interactive",
    ]
    environment = os.environ | {
        "LD_LIBRARY_PATH": str(folder),
        "CLR_OPENSSL_VERSION_OVERRIDE": "1.1",
        "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",
    }

    def call(path: str, data: bytes | None = None, method: str = "GET", kind: str = "") -> Any:
        headers = {"Content-Type": kind} if kind else {}
        request = urllib.request.Request(f"{url}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.loads(response.read().splitlines()[-1] or b"null")
        except urllib.error.HTTPError as error:
            raise ValueError(error.read().decode(errors="replace")) from error

    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        for _ in range(300):
            try:
                call("/databases")
                break
            except (ConnectionError, ValueError, urllib.error.URLError):  # It is starting.
                assert process.poll() is None, (folder / "log").read_text(errors="replace")
                time.sleep(0.2)
        yield call
    finally:
        process.kill()
        process.wait()


def _create(call: Call, name: str) -> None:
    settings = json.dumps({"DatabaseName": name}).encode()
    call(f"/admin/databases?name={name}&replicationFactor=1", settings, "PUT", "application/json")


def _import(call: Call, name: str, path: Path) -> None:
    options = json.dumps({"OperateOnTypes": "Documents,Tombstones"})
    start = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="'
    body = (
        f'{start}importOptions"\r\n\r\n{options}\r\n{start}file"; filename="{path.name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode()
    body += path.read_bytes() + f"\r\n--{BOUNDARY}--\r\n".encode()
    kind = f"multipart/form-data; boundary={BOUNDARY}"
    result = call(f"/databases/{name}/smuggler/import", body, "POST", kind)
    assert result["Documents"]["ErroredCount"] == 0, result


def _documents(call: Call, name: str) -> dict[int, Any]:
    documents = call(f"/databases/{name}/docs?start=0&pageSize=100000")["Results"]
    return {
        document["Id"]: {key: value for key, value in document.items() if key != "@metadata"}
        for document in documents
        if "Id" in document
    }


@pytest.mark.parametrize(
    "dump", [SAMPLES / "site", *sorted(DUMPS.glob("archives/*.7z"))], ids=lambda path: path.name
)
def test_imports_every_value(dump: Path, server: Call, tmp_path: Path) -> None:
    so2docs.convert(dump, tmp_path / "q.ravendbdump", nest="all")
    so2docs.convert(dump, tmp_path / "q.jsonl", nest="all")
    name = f"site{dump.stat().st_ino}"
    _create(server, name)
    _import(server, name, tmp_path / "q.ravendbdump")
    expected = {document["Id"]: document for document in so2docs.read(tmp_path / "q.jsonl")}
    assert _documents(server, name) == expected
    assert expected
