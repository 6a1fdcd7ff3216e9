"""The SQLite database of runs, answers and grades."""
