"""Open a bucket of S3, Google or Azure with the credentials of this process.

obstore reads most environment variables by itself. What it does not know is here: profiles and
their files, Azure's own names, private certificates, the time-outs we want, and that a bucket is
asked without a signature when there are no credentials: public data needs none.
"""

from __future__ import annotations

import configparser
import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from anubis.domain.errors import DatasetInvalid

if TYPE_CHECKING:
    from obstore.store import AzureConfig, AzureStore, ClientConfig, GCSStore, RetryConfig, S3Store

    Store = S3Store | GCSStore | AzureStore

Environment = Mapping[str, str]

_S3_FOUND_BY_OBSTORE = {
    "AWS_ACCESS_KEY_ID": "the key in AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "the role of AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "the role of this container",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": "the role of this container",
}
_GS_FOUND_BY_OBSTORE = {
    "GOOGLE_APPLICATION_CREDENTIALS": "the file that GOOGLE_APPLICATION_CREDENTIALS names",
    "GOOGLE_SERVICE_ACCOUNT": "the file that GOOGLE_SERVICE_ACCOUNT names",
    "GOOGLE_SERVICE_ACCOUNT_PATH": "the file that GOOGLE_SERVICE_ACCOUNT_PATH names",
    "GOOGLE_SERVICE_ACCOUNT_KEY": "the key in GOOGLE_SERVICE_ACCOUNT_KEY",
    "GOOGLE_BEARER_TOKEN": "the token in GOOGLE_BEARER_TOKEN",
}
_AZ_FOUND_BY_OBSTORE = {
    "AZURE_STORAGE_ACCOUNT_KEY": "the key in AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_SAS_TOKEN": "the signature in AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_TOKEN": "the token in AZURE_STORAGE_TOKEN",
    "AZURE_CLIENT_ID": "the client of AZURE_CLIENT_ID",
    "AZURE_CREDENTIAL_TYPE": "what AZURE_CREDENTIAL_TYPE names",
    "AZURE_USE_AZURE_CLI": "the login of the Azure command",
    "AZURE_IDENTITY_ENDPOINT": "the identity of this machine",
    "AZURE_MSI_ENDPOINT": "the identity of this machine",
}
_S3_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_GS_KEYS = ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_BASE_URL")
_AZ_KEYS = ("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_ACCOUNT_KEY")
_NO_S3 = "none: no AWS_ACCESS_KEY_ID, no AWS_PROFILE, no role of this machine"
_NO_GS = "none: no GOOGLE_APPLICATION_CREDENTIALS, no account of this machine"
_NO_AZ = "none: no AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_CONNECTION_STRING"
_ADC = ".config/gcloud/application_default_credentials.json"

LONGEST_TRANSFER = timedelta(days=1)
"""For one request with all of its body. A stalled one ends much earlier, by the read time-out."""
METADATA_SECONDS = 1.0
"""The answer of a metadata service comes from the same machine; the AWS tools wait as long."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Bucket:
    """A bucket or container, ready to be read."""

    store: Store
    place: str  #: as people write it, such as ``s3://name``
    credentials: str  #: in words where they come from, never what they are


async def open_bucket(
    scheme: str, name: str, environment: Environment, patience: timedelta
) -> Bucket:
    """The bucket, without asking whether it is there. Raises DatasetInvalid on bad credentials."""
    from obstore.exceptions import BaseError  # an extra; loaded when a bucket is asked for

    opened = {"s3": _open_s3, "gs": _open_gs, "az": _open_az}[scheme]
    try:
        store, credentials = await opened(name, environment, patience)
    except (BaseError, ValueError, OSError) as error:
        raise DatasetInvalid(f"{scheme}://{name} cannot be opened: {_first_line(error)}") from None
    return Bucket(store=store, place=f"{scheme}://{name}", credentials=credentials)


async def _open_s3(name: str, environment: Environment, patience: timedelta) -> tuple[Store, str]:
    from obstore.store import S3Store

    profile, keys = _profile(environment)
    credentials = _first(environment, _S3_FOUND_BY_OBSTORE)
    config = _passed(environment, _S3_KEYS) if credentials else dict(keys)
    endpoint = _s3_endpoint(environment, profile)
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    config["region"] = region or profile.get("region") or "us-east-1"
    if endpoint:
        config["endpoint"] = endpoint
    if not credentials and keys:
        credentials = f"the profile {environment.get('AWS_PROFILE', 'default')!r}"
    if not credentials and not endpoint and await _has_instance_role(environment):
        credentials = "the role of this machine"
    store = S3Store(
        name,
        config={**config, "skip_signature": not credentials},  # type: ignore[arg-type] # names of S3Config
        client_options=_client(endpoint, environment.get("AWS_CA_BUNDLE"), patience),
        retry_config=_retries(),
    )
    return store, credentials or _NO_S3


def _s3_endpoint(environment: Environment, profile: Mapping[str, str]) -> str:
    named = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    return named or profile.get("endpoint_url", "")


def _profile(environment: Environment) -> tuple[dict[str, str], dict[str, str]]:
    """The settings of the chosen profile, and its keys under the names of obstore.

    Raises DatasetInvalid if AWS_PROFILE names one that is not there or has no keys.
    """
    chosen = environment.get("AWS_PROFILE", "")
    name = chosen or "default"
    home = pathlib.Path(environment.get("HOME") or "/nonexistent") / ".aws"
    file = environment.get("AWS_SHARED_CREDENTIALS_FILE") or str(home / "credentials")
    config = environment.get("AWS_CONFIG_FILE") or str(home / "config")
    settings = _section(config, name if name == "default" else f"profile {name}")
    settings |= _section(file, name)
    keys = {
        ours: settings[theirs]
        for ours, theirs in (
            ("access_key_id", "aws_access_key_id"),
            ("secret_access_key", "aws_secret_access_key"),
            ("session_token", "aws_session_token"),
        )
        if theirs in settings
    }
    if chosen and len(keys) < 2 and not _first(environment, _S3_FOUND_BY_OBSTORE):
        raise DatasetInvalid(
            f"AWS_PROFILE: found {chosen!r}, expected a profile with aws_access_key_id and "
            f"aws_secret_access_key in {file} or {config}. Profiles of single sign-on and of roles "
            f"are not read: put what 'aws configure export-credentials' prints into the environment"
        )
    return settings, keys if len(keys) >= 2 else {}


def _section(file: str, name: str) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read(pathlib.Path(file).expanduser(), encoding="utf-8")
    except (configparser.Error, OSError, UnicodeDecodeError) as error:
        # Its text may quote the line, and the line may be a key.
        raise DatasetInvalid(f"{file} cannot be read: {type(error).__name__}") from None
    return dict(parser[name]) if parser.has_section(name) else {}


async def _open_gs(name: str, environment: Environment, patience: timedelta) -> tuple[Store, str]:
    from obstore.store import GCSStore

    endpoint = environment.get("GOOGLE_BASE_URL", "")
    credentials = _first(environment, _GS_FOUND_BY_OBSTORE)
    if not credentials and (pathlib.Path(environment.get("HOME") or "/") / _ADC).exists():
        credentials = f"the file ~/{_ADC}"
    if not credentials and not endpoint and await _is_google_machine():
        credentials = "the account of this machine"
    store = GCSStore(
        name,
        config={**_passed(environment, _GS_KEYS), "skip_signature": not credentials},  # type: ignore[arg-type] # names of GCSConfig
        client_options=_client(endpoint, None, patience),
        retry_config=_retries(),
    )
    return store, credentials or _NO_GS


async def _open_az(name: str, environment: Environment, patience: timedelta) -> tuple[Store, str]:
    from obstore.store import AzureStore

    config, credentials = _azure(environment)
    endpoint = str(config.get("endpoint", ""))
    store = AzureStore(
        name,
        config=config,
        client_options=_client(endpoint, None, patience),
        retry_config=_retries(),
    )
    return store, credentials or _NO_AZ


def _azure(environment: Environment) -> tuple[AzureConfig, str]:
    """Azure's own names of variables, which differ from those that obstore reads."""
    text = environment.get("AZURE_STORAGE_CONNECTION_STRING", "")
    parts = dict(part.split("=", 1) for part in text.split(";") if "=" in part)
    account = (
        environment.get("AZURE_STORAGE_ACCOUNT")
        or environment.get("AZURE_STORAGE_ACCOUNT_NAME")
        or parts.get("AccountName", "")
    )
    if not account:
        raise DatasetInvalid(
            "az:// names a container and not its account: set AZURE_STORAGE_ACCOUNT or "
            "AZURE_STORAGE_CONNECTION_STRING where data is fetched"
        )
    config: AzureConfig = {"account_name": account, **_passed(environment, _AZ_KEYS)}  # type: ignore[typeddict-item] # names of AzureConfig
    endpoint = environment.get("AZURE_STORAGE_ENDPOINT") or parts.get("BlobEndpoint")
    if not endpoint and (suffix := parts.get("EndpointSuffix")):
        endpoint = f"https://{account}.blob.{suffix}"
    if endpoint:
        config["endpoint"] = endpoint
    credentials = _first(environment, _AZ_FOUND_BY_OBSTORE)
    if key := environment.get("AZURE_STORAGE_KEY") or parts.get("AccountKey"):
        config["account_key"] = key
        credentials = "the key of the storage account"
    elif signature := parts.get("SharedAccessSignature"):
        config["sas_key"] = signature
        credentials = "the signature in AZURE_STORAGE_CONNECTION_STRING"
    config["skip_signature"] = not credentials
    return config, credentials


def _client(endpoint: str, certificates: str | None, patience: timedelta) -> ClientConfig:
    options: ClientConfig = {
        "connect_timeout": min(patience, timedelta(seconds=10)),
        "read_timeout": patience,
        "timeout": LONGEST_TRANSFER,
        "allow_http": endpoint.lower().startswith("http://"),
        "user_agent": "anubis",
    }
    if certificates:
        options["root_certificate"] = pathlib.Path(certificates).read_bytes()
    return options


def _retries() -> RetryConfig:
    # Short: whoever fetches tries again by itself, and can say so.
    return {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}


async def _has_instance_role(environment: Environment) -> bool:
    if environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return False
    base = environment.get("AWS_METADATA_ENDPOINT", "http://169.254.169.254")
    wish = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    token = await _answer("PUT", f"{base}/latest/api/token", wish)
    shown = {"X-aws-ec2-metadata-token": token}
    roles = f"{base}/latest/meta-data/iam/security-credentials/"
    return bool(token) and bool(await _answer("GET", roles, shown))


async def _is_google_machine() -> bool:
    base = "http://metadata.google.internal/computeMetadata/v1"
    account = f"{base}/instance/service-accounts/default/email"
    return bool(await _answer("GET", account, {"Metadata-Flavor": "Google"}))


async def _answer(method: str, url: str, headers: Mapping[str, str]) -> str:
    """What a metadata service says; empty if there is none."""
    import httpx  # loaded when a bucket is asked for, not when the command starts

    try:
        async with httpx.AsyncClient(trust_env=False, timeout=METADATA_SECONDS) as client:
            answer = await client.request(method, url, headers=headers)
    except httpx.HTTPError:
        return ""
    return answer.text.strip() if answer.status_code == httpx.codes.OK else ""


def _passed(environment: Environment, names: Sequence[str]) -> dict[str, str]:
    """Variables that obstore takes under the same names, in lower case."""
    return {name.lower(): environment[name] for name in names if environment.get(name)}


def _first(environment: Environment, known: Mapping[str, str]) -> str:
    return next((words for name, words in known.items() if environment.get(name)), "")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
