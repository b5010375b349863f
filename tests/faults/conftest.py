"""One process that forks, for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.faults.server import Server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    process = Server()
    yield process
    process.close()
