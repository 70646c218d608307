"""Credentials of S3 by AWS's own chain, against a server that checks signatures and what each user may do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from benchmarks.s3_server import BUCKET
from benchmarks.standalone import free_port
from privrisk_spark.errors import InputError
from privrisk_spark.storage.locations import locate
from privrisk_spark.storage.objects import ObjectStore

USERS = ("census", "vault")
"""Each user may use the bucket of the same name."""


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Key and secret of each user, and the server's address."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    # The server answers this number of requests before it checks signatures and rights: the requests below.
    free = 4 * len(USERS) + 1 + 3
    environment = {**os.environ, "PYTHONWARNINGS": "ignore", "INITIAL_NO_AUTH_ACTION_COUNT": str(free)}
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        first = {"aws_access_key_id": "first", "aws_secret_access_key": "first", "region_name": "us-east-1"}
        clients = [
            boto3.Session(**first).client(name, endpoint_url=address, config=Config(retries={"max_attempts": 0}))
            for name in ("iam", "s3", "sts")
        ]
        iam, s3, sts = clients
        for _ in range(300):
            with suppress(BotoCoreError):
                s3.list_buckets()
                break
            time.sleep(0.1)
        found: dict[str, Any] = {"address": address}
        for user in USERS:
            iam.create_user(UserName=user)
            made = iam.create_access_key(UserName=user)["AccessKey"]
            found[user] = (made["AccessKeyId"], made["SecretAccessKey"])
            iam.put_user_policy(UserName=user, PolicyName="own", PolicyDocument=allowed(user))
            s3.create_bucket(Bucket=user)
        arn = iam.create_role(RoleName="pod", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        iam.put_role_policy(RoleName="pod", PolicyName="own", PolicyDocument=allowed("vault"))
        lent = sts.assume_role(RoleArn=arn, RoleSessionName="run")["Credentials"]
        found["role"] = (arn, *(lent[name] for name in ("AccessKeyId", "SecretAccessKey", "SessionToken")))
        yield found
    finally:
        process.terminate()
        process.wait(20)


def allowed(*buckets: str) -> str:
    resources = [f"arn:aws:s3:::{bucket}{rest}" for bucket in buckets for rest in ("", "/*")]
    statement = {"Effect": "Allow", "Action": "s3:*", "Resource": resources}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


@pytest.fixture
def home(keys: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with a profile of each user, and no keys in the environment."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    lines = []
    for user in USERS:
        lines += [f"[{user}]", f"aws_access_key_id = {keys[user][0]}", f"aws_secret_access_key = {keys[user][1]}"]
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text("\n".join(lines) + "\n")
    for name, value in {
        "HOME": str(tmp_path),
        "AWS_ENDPOINT_URL": keys["address"],
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
    }.items():
        monkeypatch.setenv(name, value)
    return tmp_path


def write(bucket: str) -> bytes:
    """Write an object into a bucket and read it."""
    store = ObjectStore(locate(f"s3://{bucket}/place", key="output.path"), retry_seconds=1)
    store.write("a", b"one")
    return store.read("a").content


def test_object_store_profile_of_the_environment_is_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "census")
    assert write("census") == b"one"
    with pytest.raises(InputError, match="access is denied to write in bucket or container 'vault'"):
        write("vault")


def test_object_store_profiles_of_buckets_are_used(
    home: Path, keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The profile of a bucket comes before the keys of the environment, which the other bucket takes."""
    monkeypatch.setenv("PRIVRISK_AWS_PROFILES", "other=x, vault = vault")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", keys["census"][0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", keys["census"][1])
    assert [write(bucket) for bucket in USERS] == [b"one", b"one"]


def test_object_store_web_identity_is_used(home: Path, keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A service answers with the keys of a role for the token of the file."""
    (home / "token").write_text("of-the-pod")
    (home / ".aws" / "credentials").unlink()
    role, asked = keys["role"][0], []

    class Service(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            asked.append((form["Action"], form["RoleArn"], form["WebIdentityToken"]))
            names = ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
            values = (*keys["role"][1:], "2099-01-01T00:00:00Z")
            inner = "".join(f"<{name}>{value}</{name}>" for name, value in zip(names, values, strict=True))
            kind = "AssumeRoleWithWebIdentity"
            body = f"<{kind}Response><{kind}Result><Credentials>{inner}</Credentials></{kind}Result></{kind}Response>"
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body.encode())

    with HTTPServer(("127.0.0.1", 0), Service) as service:
        threading.Thread(target=service.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{service.server_port}")
        monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(home / "token"))
        monkeypatch.setenv("AWS_ROLE_ARN", role)
        assert write("vault") == b"one"
        with pytest.raises(InputError, match="access is denied"):
            write("census")
        service.shutdown()
    assert set(asked) == {("AssumeRoleWithWebIdentity", role, "of-the-pod")}


def test_object_store_wrong_secret_or_missing_profile_raises(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / ".aws" / "credentials"
    file.write_text(file.read_text().replace("secret_access_key = ", "secret_access_key = x"))
    monkeypatch.setenv("AWS_PROFILE", "census")
    with pytest.raises(InputError, match="access is denied"):
        write("census")
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(InputError, match="the profile 'nobody' has no credentials"):
        write("census")


def test_object_store_key_of_kms_is_asked_for(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SERVER_SIDE_ENCRYPTION", "aws:kms")
    monkeypatch.setenv("AWS_SSE_KMS_KEY_ID", "arn:aws:kms:us-east-1:123456789012:key/of-the-vault")
    store = ObjectStore(locate(f"s3://{BUCKET}/kms", key="output.path"))
    store.create("a", b"one")
    found = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").head_object(Bucket=BUCKET, Key="kms/a")
    assert (found["ServerSideEncryption"], found["SSEKMSKeyId"].rpartition("/")[2]) == ("aws:kms", "of-the-vault")
