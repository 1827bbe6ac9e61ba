"""A file never causes an import or a connection.

``module:EnvId`` makes Gymnasium import `module`, which runs its code. That is fine when a person typed it, or when
clipup itself knows the module. When the name only stands in a file (a policy, a run's configuration), the person has
to name the module too. The same holds for the address of a cluster: what answers there sends objects that run code
when they are read.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection

from clipup.errors import InvalidArgument

KNOWN_MODULES = frozenset({"pybullet_envs_gymnasium"})
"""Modules that clipup's own presets import."""
KNOWN_CLUSTERS = (None, "ray", "auto")
"""What a file may say of a cluster: none, or the one of this machine."""


def check_import(env: str, *, named: Collection[str], source: str) -> None:
    """Refuse an environment from the file `source` whose module the user did not name."""
    module, separator, _ = env.rpartition(":")
    if separator and module not in KNOWN_MODULES and module not in named:
        raise InvalidArgument(
            f"{source} names the environment {env!r}, which imports the module {module!r}; "
            f"if you trust it, say so: --import {module}"
        )


def import_words(env: str) -> list[str]:
    """Return the words that let a command import the module of `env`, which a file names: ``--import MODULE``."""
    module = env.rpartition(":")[0]
    return ["--import", module] if module and module not in KNOWN_MODULES else []


def import_flag(env: str) -> str:
    """Return `import_words` as text that continues a command."""
    return "".join(f" {shlex.quote(word)}" for word in import_words(env))


def check_cluster(cluster: str | None, *, named: bool, source: str) -> None:
    """Refuse the address of a cluster from the file `source` that the user did not name."""
    if cluster not in KNOWN_CLUSTERS and not named:
        raise InvalidArgument(
            f"{source} names the cluster {cluster!r}, to which clipup would connect; if you trust it, say so: "
            f"--cluster {cluster}"
        )
