"""Which models are of one family: judges may favour their own."""

from __future__ import annotations

import re

_FAMILIES = {
    "openai": ("gpt", "chatgpt", "o1", "o3", "o4", "davinci"),
    "anthropic": ("claude",),
    "google": ("gemini", "gemma", "palm"),
    "meta": ("llama", "codellama"),
    "alibaba": ("qwen", "qwq", "qvq"),
    "mistral": (
        *("mistral", "mixtral", "ministral", "codestral", "devstral", "magistral", "pixtral"),
        *("nemo", "zephyr"),
    ),
    "deepseek": ("deepseek",),
    "microsoft": ("phi", "wizardlm"),
    "xai": ("grok",),
    "cohere": ("command", "aya"),
    "ibm": ("granite",),
    "huggingface": ("smollm",),
    "amazon": ("nova", "titan"),
    "zhipu": ("glm", "chatglm"),
    "moonshot": ("kimi", "moonshot"),
    "01": ("yi",),
    "allenai": ("olmo", "tulu"),
    "tii": ("falcon",),
    "nvidia": ("nemotron",),
    "minimax": ("minimax",),
    "ai21": ("jamba",),
}
_OF_STEM = {stem: family for family, stems in _FAMILIES.items() for stem in stems}


def family(model: str) -> str:
    """The family of a model by its name, whatever provider or path stands before it; else its own first word."""
    name = model.casefold().rsplit("/", 1)[-1]
    words = re.findall(r"o\d|[a-z]+", name)
    for word in words:
        for stem, found in _OF_STEM.items():
            if word == stem or (len(stem) > 3 and word.startswith(stem)):
                return found
    return words[0] if words else name


def same_family(a: str, b: str) -> bool:
    """Whether a judge and a model under test are of one family."""
    return family(a) == family(b)
