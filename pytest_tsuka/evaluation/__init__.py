"""Grading passes over stored answers: embedding, asking the judge, keeping what came of it."""
