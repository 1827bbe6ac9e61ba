"""Commands that repeat a run, ready to paste."""

from __future__ import annotations

import shlex
from pathlib import Path

from clipup.errors import ClipUpError
from clipup.runs.config import RunConfig, config_values, settings
from clipup.runs.resolve import resolve
from clipup.runs.toml import format_value, parse_value
from clipup.runs.trust import KNOWN_CLUSTERS, import_words


def train_command(config: RunConfig) -> str:
    """The shortest ``clipup train`` command with this configuration, without what the task's preset already says."""
    try:
        usual, _ = resolve({"env": config.env})
    except ClipUpError:
        usual = RunConfig(env=config.env)
    known = settings()
    words = ["clipup", "train", config.env]
    usual_values = config_values(usual)
    for name, value in config_values(config).items():
        if name in ("env", "env_options") or value == usual_values[name] or known[name].group == "execution":
            continue
        flag = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words.append(flag if value else flag.replace("--", "--no-", 1))
        else:
            text = _plain(format_value(value, unset=known[name].unset))  # pyright: ignore[reportArgumentType]
            # argparse reads a word like -1e-05 as a flag, unless it follows an equals sign.
            words += [f"{flag}={text}"] if text.startswith("-") else [flag, text]
    for name, option in config.env_options.items():
        text = format_value(option)
        # Without quotes, the text "3" would be read as a number.
        words += [f"--env.{name}", _plain(text) if parse_value(_plain(text)) == option else text]
    return shlex.join(words)


def repeat_command(
    path: Path, env: str = "", cluster: str | None = None, policy: str = "", wrapper: str | None = None
) -> str:
    """The command that repeats a run bit for bit from its own configuration file.

    It allows the modules that these settings import. It leaves out the address of a cluster: results do not depend
    on where they are computed, the cluster may be gone, and pasting a command must not connect to an address from a
    foreign file.
    """
    where = [] if cluster in KNOWN_CLUSTERS else ["--cluster", "none"]
    words = ["clipup", "train", "--config", str(path / "config.toml"), *import_words(env, policy, wrapper), *where]
    words += ["--run", f"{path}-again"]
    return shlex.join(words)


def _plain(text: str) -> str:
    return text[1:-1] if text.startswith('"') and "\\" not in text else text
