"""Suite files: what a benchmark is, reading a folder, problems with their places."""
