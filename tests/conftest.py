"""Settings for every test."""

from hypothesis import settings

# Timings are not tests: on a busy machine a deadline fails by chance. The examples are drawn from fixed seeds, so that
# a change which passes here passes everywhere.
settings.register_profile("clipup", deadline=None, derandomize=True)
settings.load_profile("clipup")
