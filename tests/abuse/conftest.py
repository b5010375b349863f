"""How long the fuzzing of this folder goes on: `ci` in the suite, `long` for `make fuzz`."""

import os

from hypothesis import HealthCheck, settings

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture)
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "2000"))  # of each test of a long run
settings.register_profile(
    "ci", max_examples=25, derandomize=True, deadline=None, suppress_health_check=SLOW
)
settings.register_profile(
    "long", max_examples=EXAMPLES, derandomize=False, deadline=None, suppress_health_check=SLOW
)


def budget() -> settings:
    """The profile that HYPOTHESIS_PROFILE names; the suite's own without it."""
    return settings.get_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
