"""Root of the project's own test run. Hooks of pytest-tsuka (`pytest_tsuka_*`) belong in a file at this place."""

collect_ignore = ["perf"]
