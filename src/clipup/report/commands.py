"""How to repeat a run: as a command that can be pasted."""

from __future__ import annotations

import shlex
from pathlib import Path

from clipup.errors import ClipUpError
from clipup.runs.config import RunConfig, config_values, settings
from clipup.runs.resolve import resolve
from clipup.runs.toml import format_value, parse_value
from clipup.runs.trust import KNOWN_MODULES


def train_command(config: RunConfig) -> str:
    """The shortest ``clipup train`` that gives this configuration: what the task's preset says is left out."""
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
            words += [flag, _plain(format_value(value, unset=known[name].unset))]  # pyright: ignore[reportArgumentType]
    for name, option in config.env_options.items():
        text = format_value(option)
        # Without its quotes, the text "3" would be read back as a number.
        words += [f"--env.{name}", _plain(text) if parse_value(_plain(text)) == option else text]
    return shlex.join(words)


def repeat_command(path: Path, env: str = "") -> str:
    """Repeat a run from its own configuration file, bit for bit; a module that its `env` imports is named."""
    module = env.rpartition(":")[0]
    trust = ["--import", module] if module and module not in KNOWN_MODULES else []
    return shlex.join(["clipup", "train", "--config", str(path / "config.toml"), *trust, "--run", f"{path}-again"])


def _plain(text: str) -> str:
    return text[1:-1] if text.startswith('"') and "\\" not in text else text
