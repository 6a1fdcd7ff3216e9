"""The project's own test run: pytest's plugin tester for everything under tests/."""

pytest_plugins = ["pytester"]
