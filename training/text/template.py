"""A tokenizer's chat template: rendering, reserved strings, the tokens that end a reply.

Raises `BadInput` for a tokenizer without a chat template, or with a template that cannot render a plain conversation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from jinja2 import TemplateError

from training.errors import BadInput

if TYPE_CHECKING:
    from training.text.messages import Chat

_OPEN, _SHUT = "\ue000", "\ue001"
_PRIVATE_USE = str.maketrans({_OPEN: "\ufffd", _SHUT: "\ufffd"})


class Tokenizer(Protocol):
    """The part of a Hugging Face tokenizer that is used here."""

    eos_token_id: int | None
    added_tokens_decoder: Mapping[int, Any]

    def apply_chat_template(self, conversation: list[Chat], **options: Any) -> Any:
        """Render a conversation by the template."""

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Return token ids; strings of added tokens become their ids."""

    def decode(self, token_ids: list[int], *, skip_special_tokens: bool, clean_up_tokenization_spaces: bool) -> str:
        """Return text."""


def placeholder(index: int) -> str:
    """Return a text that no neutralised message contains, as a placeholder for sampled reply `index`."""
    return f"{_OPEN}{index}{_SHUT}"


class ChatTokenizer:
    """A tokenizer with the properties of its chat template.

    `stop_ids` end a reply: every special token between a reply and the next message's text, and the end of sequence.
    The first of them, `end_id`, is the last token of a finished reply. `drops_thinking` tells whether the template
    removes <think> blocks from earlier replies. `options` are passed to the template at every rendering (for instance
    `enable_thinking=False`).
    """

    def __init__(self, tokenizer: Tokenizer, **options: Any) -> None:
        self.tokenizer = tokenizer
        self._options = options
        self._folds_system = False
        self._special = {at: token.content for at, token in tokenizer.added_tokens_decoder.items() if token.special}
        by_length = sorted(self._special.values(), key=len, reverse=True)
        self._reserved = re.compile("|".join(map(re.escape, by_length))) if by_length else None
        self._probe()

    def _probe(self) -> None:
        messages: list[Chat] = [
            {"role": "system", "content": "rules"},
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": placeholder(0)},
            {"role": "user", "content": placeholder(1)},
        ]
        try:
            text = self._render(messages)
        except (TemplateError, ValueError):
            self._folds_system = True
            try:
                text = self._render(messages)
            except (TemplateError, ValueError) as error:
                raise BadInput(f"the chat template cannot render a conversation: {error}", "tokenizer") from error
        between = text.partition(placeholder(0))[2].partition(placeholder(1))[0]
        stops = [token for token in self.encode(between) if token in self._special]
        if self.tokenizer.eos_token_id is not None:
            stops.append(self.tokenizer.eos_token_id)
        if not stops:
            raise BadInput("the tokenizer has no special token that could end a reply", "tokenizer")
        self.stop_ids: tuple[int, ...] = tuple(dict.fromkeys(stops))
        messages[2] = {"role": "assistant", "content": f"<think>\n{placeholder(2)}\n</think>\n\nyes"}
        self.drops_thinking = placeholder(2) not in self._render(messages)

    def _render(self, messages: Sequence[Chat]) -> str:
        plain = self._folded(messages) if self._folds_system else list(messages)
        text = self.tokenizer.apply_chat_template(plain, tokenize=False, add_generation_prompt=True, **self._options)
        return str(text)

    @property
    def end_id(self) -> int:
        """The token that ends a finished reply."""
        return self.stop_ids[0]

    @staticmethod
    def _folded(messages: Sequence[Chat]) -> list[Chat]:
        """Put the rules at the start of the first user message, for templates without a system message."""
        first, *rest = messages
        if first["role"] != "system":
            return list(messages)
        rules: Chat = {"role": "user", "content": first["content"]}
        if not rest or rest[0]["role"] != "user":
            return [rules, *rest]
        second, *rest = rest
        return [{"role": "user", "content": f"{first['content']}\n\n{second['content']}"}, *rest]

    def render(self, messages: Sequence[Chat]) -> str:
        """Return the conversation as text, up to where the assistant's next reply begins."""
        try:
            return self._render(messages)
        except (TemplateError, ValueError) as error:
            raise BadInput(f"the chat template refuses the conversation: {error}", "tokenizer") from error

    def neutral(self, text: str) -> str:
        """Return `text` with a space inside every string that the tokenizer reserves, so that it stays plain text."""
        text = text.translate(_PRIVATE_USE)
        if self._reserved is None:
            return text
        return self._reserved.sub(lambda match: f"{match[0][0]} {match[0][1:]}", text)

    def neutral_message(self, message: Chat) -> Chat:
        """Return the message with neutral content."""
        return {"role": message["role"], "content": self.neutral(message["content"])}

    def prompt(self, messages: Sequence[Chat]) -> list[int]:
        """Return the tokens of a whole conversation rendered at once, every text in it neutralised."""
        return self.encode(self.render([self.neutral_message(message) for message in messages]))

    def encode(self, text: str) -> list[int]:
        """Return the ids of template text; reserved strings become their ids, nothing is added."""
        return self.tokenizer.encode(text, add_special_tokens=False)

    def decode(self, tokens: Sequence[int]) -> str:
        """Return sampled tokens as text without special tokens."""
        return self.tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)
