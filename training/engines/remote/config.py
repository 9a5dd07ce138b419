"""The configuration of a remote model in forms and files: address, model, the name of a secret, limits.

Light enough for the site: the client itself is `training.engines.remote.chat`. Secrets are named, never stored; a name
is looked up at the moment of a call, and a malformed or unset one raises `BadInput`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, field_validator

from training.errors import BadInput
from training.reading import Record

Parameter = Literal["temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "stop", "seed"]

SECRET_NAME = re.compile(r"[A-Z][A-Z0-9_]*_API_KEY")


def check_secret_name(name: str) -> str:
    """Return `name`; raise `ValueError` unless it is empty or looks like `SOMETHING_API_KEY`.

    The required form prevents a configuration from sending another variable, such as a database password. The
    allow-list determines which key may be sent to which address.
    """
    if name and not SECRET_NAME.fullmatch(name):
        raise ValueError("give the name of an environment variable that ends in _API_KEY, never the key itself")
    return name


def secret_from_environment(name: str) -> str:
    """Return the value of the secret `name`; raise `BadInput` if the name is malformed or not set."""
    try:
        check_secret_name(name)
    except ValueError as error:
        raise BadInput(str(error), "secret") from error
    if not (key := os.environ.get(name, "")):
        raise BadInput(f"the environment variable {name} is not set", "secret")
    return key


class RemoteConfig(Record):
    """The connection to one remote model.

    `accepts` names the sampling parameters that are sent; others are left out. `timeout_s` bounds one whole attempt,
    from name resolution to the last byte. `json_object` requests a JSON object from the server.
    """

    address: str = Field(min_length=1, max_length=500, description="Base address, such as https://host.example/v1")
    model: str = Field(min_length=1, max_length=200, description="The model's name at that address")
    secret: str = Field(
        default="",
        max_length=200,
        description="Name of the environment variable that holds the key; MODEL_ADDRESSES says what may be sent where",
    )
    timeout_s: float = Field(default=60.0, gt=0, le=600, description="Longest wait for one answer, in seconds")
    retries: int = Field(default=2, ge=0, le=2, description="Further attempts after a failed call")
    max_bytes: int = Field(default=1_000_000, ge=1_000, le=8_000_000, description="Longest answer, in bytes")
    concurrency: int = Field(default=8, ge=1, le=256, description="Calls in flight at once")
    accepts: tuple[Parameter, ...] = Field(
        default=("temperature", "top_p", "max_tokens", "stop", "seed"),
        max_length=20,
        description="Sampling parameters that are sent; the others are left out",
    )
    json_object: bool = Field(default=False, description="Ask the server for a JSON object")

    _secret_is_a_name = field_validator("secret")(check_secret_name)


def remote_config(source: str) -> RemoteConfig:
    """Return the configuration that the text `ADDRESS MODEL [SECRET]` describes."""
    words = source.split()
    if len(words) not in (2, 3):
        raise BadInput("a remote model is named by address, model and, if it needs one, the name of a secret", source)
    named: Mapping[str, str] = dict(zip(("address", "model", "secret"), words, strict=False))
    return RemoteConfig.from_dict(named)
