"""Small byte-level tokenizers with the chat templates of well-known families, built on the spot."""

from functools import cache

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA = (
    "{{ '<|begin_of_text|>' }}{% for m in messages %}{{ '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n'"
    " + m['content'] | trim + '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
THINKING = (
    "{% for m in messages %}{% set content = m['content'] %}"
    "{% if m['role'] == 'assistant' and '</think>' in content and not loop.last %}"
    "{% set content = content.split('</think>')[-1].lstrip('\n') %}{% endif %}"
    "{{ '<|im_start|>' + m['role'] + '\n' + content + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>\n\n</think>\n\n' }}{% endif %}"
    "{% endif %}"
)
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{{ '<bos>' }}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "{{ '<start_of_turn>' + m['role'] + '\n' + m['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>assistant\n' }}{% endif %}"
)
FAMILIES = {
    "chatml": (CHATML, ("<|endoftext|>", "<|im_start|>", "<|im_end|>"), "<|im_end|>", "<|im_start|>"),
    "llama": (
        LLAMA,
        ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|end_of_text|>"),
        "<|eot_id|>",
        "<|start_header_id|>",
    ),
    "thinking": (THINKING, ("<|endoftext|>", "<|im_start|>", "<|im_end|>"), "<|im_end|>", "<|im_start|>"),
    "no-system": (NO_SYSTEM, ("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"), "<eos>", "<start_of_turn>"),
}
"""Name: template, special tokens, end of sequence, the token that starts a turn."""

TEXT = [
    "You divide food, water and firewood with your partner. Each pile has 3 units.",
    "I would like to keep the food. What do you need most? <propose>food 2, water 1, firewood 0</propose>",
    "<accept></accept> <reject></reject> Deal! No, I can't do that. system user assistant think",
]


@cache
def tokenizer(family: str) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of about 400 tokens with the family's chat template."""
    template, special, eos, _ = FAMILIES[family]
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=list(special), initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(TEXT, trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=made, eos_token=eos)
    fast.chat_template = template
    return fast


def turn_start(family: str) -> int:
    """The id that starts every turn of the family's template."""
    return tokenizer(family).convert_tokens_to_ids(FAMILIES[family][3])
