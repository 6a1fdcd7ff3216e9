"""A benchmark and a backend make a conversation."""
