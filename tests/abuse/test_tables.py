"""The tables of bad input together: how many rows there are, and how many are real processes."""

from tests.abuse import (
    test_commands,
    test_experiments,
    test_folders,
    test_models,
    test_records,
    test_sizes,
    test_user_code,
)


def test_hundreds_of_rows_and_twenty_of_them_as_real_processes() -> None:
    tables = (test_commands, test_experiments, test_folders, test_models, test_records)
    cases = [*test_sizes.cases(), *test_user_code.cases()]
    assert sum(len(table.ROWS) for table in tables) + len(cases) >= 300
    named = sum(len(table.PROCESSES) for table in tables)
    assert named + sum(case.process for case in cases) >= 20
