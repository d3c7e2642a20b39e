# SPDX-License-Identifier: GPL-2.0
"""Certificates of a site's hosts for dsmd's transport, made for one benchmark and thrown away with it.

By openssl(1), as dsmd(8) tells an administrator to make them: one CA, and for each host a certificate for both roles of a
connection with its name.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

DAYS = "365"
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc")


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, text=True)


def make(folder: Path, names: Sequence[str]) -> None:
    """Write ca.pem, and for the host with number N of `names` N.pem and N.key. Raises subprocess.CalledProcessError."""
    ca, ca_key = folder / "ca.pem", folder / "ca.key"
    authority = ("-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign")
    _openssl(
        "req", "-x509", "-days", DAYS, "-subj", "/CN=the site's CA", *authority, *KEY, "-keyout", ca_key, "-out", ca
    )
    ca.chmod(0o644)  # whatever the umask: one that others can write is refused
    for number, name in enumerate(names):
        key = folder / f"{number}.key"
        extensions = (
            *("-addext", f"subjectAltName=DNS:{name}"),
            *("-addext", "basicConstraints=critical,CA:FALSE"),
            *("-addext", "keyUsage=critical,digitalSignature"),
            *("-addext", "extendedKeyUsage=serverAuth,clientAuth"),
        )
        signed = ("-CA", ca, "-CAkey", ca_key, "-days", DAYS, "-subj", "/CN=host")
        _openssl("req", "-x509", *signed, *extensions, *KEY, "-keyout", key, "-out", folder / f"{number}.pem")
        key.chmod(0o600)
    ca_key.unlink()
