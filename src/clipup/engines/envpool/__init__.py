"""The EnvPool engine: whole populations through C++ simulators."""

NAME = "envpool"
