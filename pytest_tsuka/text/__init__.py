"""Strings, and the JSON in them. Pure."""
