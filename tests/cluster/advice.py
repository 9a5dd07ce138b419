"""Follows the advice of a refusal, as a person would."""

import json

from training.config import RunConfig, parse


def followed(run: RunConfig, words: str) -> RunConfig:
    """The configuration with the changes that a line of advice names."""
    changes = run.to_dict()
    for change in words.split(" and "):
        if change.startswith("LoRA"):
            changes["learn"] |= {"lora": changes["learn"]["lora"] or {}, "dtype": "bfloat16"}
        else:
            section, (name, value) = change.split(".")[0], change.split(".", 1)[1].split(" = ")
            changes[section][name] = json.loads(value)
    return parse(changes)
