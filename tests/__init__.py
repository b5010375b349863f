"""Types are checked while the tests run: shapes of arrays by jaxtyping, all others by beartype.

jaxtyping's wrapper costs some 20 microseconds per call, beartype's one. So jaxtyping checks the
modules that name shapes or import for type checkers alone (`--jaxtyping-packages` in
pyproject.toml), and beartype the rest. Both are off together: `-o addopts=-q`.
"""

import sys

REST = (
    "maskwalk.bench",
    "maskwalk.errors",
    "maskwalk.reading",
    "maskwalk.report",
    "maskwalk.resources",
    "maskwalk.specs",
)

try:
    from beartype import BeartypeConf, beartype
    from beartype.claw import beartype_packages
except ImportError:  # the GPU tests also run where nothing can be installed
    pass
else:
    conf = BeartypeConf(is_pep484_tower=True, claw_is_pep526=False)  # an int is a float (PEP 484)
    checked = beartype(conf=conf)
    if any(type(finder).__module__.startswith("jaxtyping") for finder in sys.meta_path):
        beartype_packages(REST, conf=conf)
