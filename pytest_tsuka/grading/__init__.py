"""Grading passes: stored answers in, grades and a better reference out."""
