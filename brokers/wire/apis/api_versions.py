"""ApiVersions: what this broker serves. The one API that answers a version it does not know (KIP-511)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from brokers.wire.schema import Int16, Int32, Since, String


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsRequest:
    client_software_name: Annotated[String, Since(3)] = ""
    client_software_version: Annotated[String, Since(3)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersion:
    api_key: Int16
    min_version: Int16
    max_version: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsResponse:
    error_code: Int16
    api_keys: tuple[ApiVersion, ...]
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
