"""Backends: any OpenAI-compatible endpoint, a model run in this process, recordings, scripts."""
