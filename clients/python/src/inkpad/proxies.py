"""Which proxy leads to the service: the one of the option, or of the environment, as Go reads it."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import urllib3

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Proxy:
    url: str
    """Without a user and a password, which would end in messages."""
    headers: dict[str, str]
    """For the proxy alone."""


def find_proxy(base_url: str, proxy: str | None) -> Proxy | None:
    """The proxy for requests to `base_url`; None: there is none.

    proxy: the option; an empty text for none, None for what the environment says
    """
    if proxy is not None:
        return _parse_proxy(proxy, "proxy") if proxy.strip() else None
    scheme = urlsplit(base_url).scheme
    names = [f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY"]
    if "REQUEST_METHOD" in os.environ:
        names = [name for name in names if not _may_be_forged(name)]
    name = next((name for name in names if os.environ.get(name, "").strip()), None)
    if name is None or _is_excepted(base_url):
        return None
    return _parse_proxy(os.environ[name], name)


def _may_be_forged(name: str) -> bool:
    """Tells whether a CGI request can set a variable, with a header Proxy (httpoxy, CVE-2016-5385).

    Windows does not tell its spellings apart.
    """
    return name == "HTTP_PROXY" or (os.name == "nt" and name == "http_proxy")


def _parse_proxy(text: str, name: str) -> Proxy:
    text = text.strip()
    address = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        # What it says may quote the password.
        host, port = None, None
    if not host or parts.scheme not in _PORTS:
        raise ValueError(f"{name} must be an http or https URL, such as http://proxy.example:3128")
    host = f"[{host}]" if ":" in host else host
    headers = {}
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers = dict(urllib3.make_headers(proxy_basic_auth=user))
    return Proxy(f"{parts.scheme}://{host}:{port or _PORTS[parts.scheme]}", headers)


def _is_excepted(base_url: str) -> bool:
    """Whether NO_PROXY has the host: by its name or one above it, its address or its network."""
    parts = urlsplit(base_url)
    host = (parts.hostname or "").rstrip(".")
    port = parts.port or _PORTS[parts.scheme]
    entries = os.environ.get("no_proxy", "").strip() or os.environ.get("NO_PROXY", "")
    return any(_matches(entry.lower(), host, port) for entry in re.split(r"[\s,]+", entries))


def _matches(entry: str, host: str, port: int) -> bool:
    if entry in ("", "*"):
        return entry == "*"
    network = _parse_network(entry)
    if network is None:
        entry, colon, entry_port = entry.rpartition(":") if ":" in entry else (entry, "", "")
        if colon and entry_port != str(port):
            return False
        network = _parse_network(entry)
    address = _parse_address(host)
    if network is not None:
        return address is not None and address in network
    name = entry.removeprefix("*").strip(".")
    return name != "" and (host == name or (address is None and host.endswith(f".{name}")))


def _parse_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """An address is a network too."""
    try:
        return ipaddress.ip_network(re.sub(r"^\[(.*)\]$", r"\1", text), strict=False)
    except ValueError:
        return None


def _parse_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
