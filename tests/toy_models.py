"""A random Llama of a few thousand parameters with a byte-level ChatML tokenizer: real files, made in milliseconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def write_random_llama(
    folder: Path,
    *,
    seed: int = 0,
    layers: int = 2,
    scale: float = 0.3,
    window: int = 512,
    known: str = "",
    width: int = 64,
    file_size: str = "5GB",
    **changes: Any,
) -> Path:
    """Write a random model (head size 32, 64 wide) into `folder`; `scale` makes its distribution far from uniform.

    `file_size` is that of the largest file of weights, `changes` are made to its configuration. A byte is a token, and
    so is each of the most frequent parts of the text `known`, which makes long prompts short.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    raw = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate([*special, *alphabet])}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    if known:
        trainer = trainers.BpeTrainer(
            vocab_size=1000, special_tokens=special, initial_alphabet=alphabet, show_progress=False
        )
        raw.train_from_iterator([known], trainer)
    raw.add_special_tokens(special)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<|endoftext|>", eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    tokenizer.chat_template = CHATML
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 32,
        num_key_value_heads=width // 64,
        head_dim=32,
        max_position_embeddings=window,
        initializer_range=scale,
        bos_token_id=0,
        eos_token_id=2,
        pad_token_id=0,
        **{"intermediate_size": 2 * width, "tie_word_embeddings": True, **changes},
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder, max_shard_size=file_size)
    tokenizer.save_pretrained(folder)
    return folder


def write_adapter(base: Path, folder: Path, rank: int, seed: int) -> Path:
    """LoRA adapters that change the model much; PEFT begins with ones that change nothing."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    made = get_peft_model(
        AutoModelForCausalLM.from_pretrained(base),
        LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", init_lora_weights=False),
    )
    made.peft_config["default"].base_model_name_or_path = str(base)
    made.save_pretrained(folder)
    return folder
