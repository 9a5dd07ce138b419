"""`tiny`: a Llama of about a million parameters that plays the project's games, for tests and quick trials.

Its tokenizer is trained on the games' text and its weights on games between scripted players, with the code of the
cold start. Pretraining takes about two CPU minutes. The model is stored under PARLEY_HOME with a hash of its recipe and
of sample games as text, and is pretrained again when either changes.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from training import bases
from training.learn.tiny.games import play
from training.reading import Record
from training.records import Episode, Trace
from training.sections import SftConfig
from training.seeding import rng
from training.store import atomic_directory, dumps
from training.text.conversations import traces

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM, PreTrainedTokenizerBase

    from training.text.template import ChatTokenizer

log = logging.getLogger(__name__)

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

APART = (r"</?[a-z_]+/?>", r"[^\s<>]+ (?=\d)", r"\d(, )?", r"\n", r"[:;,] ?")
"""Patterns that are tokenized separately: tags, a word before a number, digits, line ends. Other text may merge across
words, so that fixed phrases of the games take few tokens."""


class Recipe(Record):
    """Everything that determines `tiny`.

    `context` is the share of observation tokens that are targets too: a new model learns more from them than from the
    few replies, above all to copy names from its prompt. Batches are small so that there are enough updates.
    """

    version: int = 1
    seed: int = 0
    vocabulary: int = 2048
    hidden: int = 128
    layers: int = 3
    heads: int = 4
    groups: int = 2
    mlp: int = 320
    window: int = 4096
    spread: float = 0.06
    items: int = 650
    prices: int = 310
    dialogues: int = 70
    context: float = 0.4
    sft: SftConfig = SftConfig(
        tokens_per_batch=1280, batches_per_step=1, max_length=2048, lr=5e-3, warmup=0.03, lora=None
    )

    @property
    def games(self) -> dict[str, int]:
        """Number of games per sample."""
        return {"items": self.items, "prices": self.prices, "dialogues": self.dialogues}


RECIPE = Recipe()


class Traced(Protocol):
    """How a game becomes traces; `window` is the longest of them in tokens."""

    def __call__(self, episode: Episode, chat: ChatTokenizer, /, *, window: int | None) -> Sequence[Trace]:
        """Return the traces of all seats."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of pretraining: which traces of the games the model reads, and what it changes in the recipe.

    `context` and `sft` replace the recipe's `context` and settings of its `sft`, where they are given.
    """

    traced: Traced = traces
    context: float | None = None
    sft: Mapping[str, Any] = field(default_factory=dict)

    def of(self, recipe: Recipe) -> Recipe:
        """Return the recipe of this stage."""
        context = recipe.context if self.context is None else self.context
        sft = SftConfig.from_dict({**recipe.sft.to_dict(), **self.sft})
        return recipe.model_copy(update={"context": context, "sft": sft})


READING = 0.1
"""The share of the time that passes before the first batch: games are played, and their traces made."""


def key(recipe: Recipe = RECIPE) -> str:
    """Return the hash of the recipe and of a few of its games as text, so that it changes with the games' wording."""
    few = dict.fromkeys(recipe.games, 3)
    text = dumps(recipe.to_dict()) + "".join(_texts(play(few, recipe.seed)))
    return hashlib.sha256(text.encode()).hexdigest()


def prepare_tiny(*, force: bool = False) -> Path:
    """Return the folder of `tiny`; pretrain it if the folder is missing or has another recipe (or with `force`)."""
    entry = bases.REGISTRY["tiny"]
    digest = key()
    if not force and bases.is_prepared(entry) and bases.read_info(entry.folder).dataset == (digest,):
        return bases.check_folder(entry.folder)
    with bases.PreparationLog(entry) as progress, atomic_directory(entry.folder) as folder:
        build(folder, RECIPE, digest, progress.reached)
    return entry.folder


def build(folder: Path, recipe: Recipe, digest: str, on_progress: Callable[[float], None] = lambda _: None) -> None:
    """Pretrain a model by the recipe into the existing `folder`; call `on_progress` with the share done (0 to 1)."""
    entry = bases.REGISTRY["tiny"]
    info = bases.ModelInfo(
        name="tiny",
        base="tiny",
        licence=entry.licence,
        note=entry.note,
        dataset=(digest,),
        command="python -m training models prepare tiny",
    )
    pretrain(folder, play(recipe.games, recipe.seed), recipe, info, on_progress=on_progress)


def pretrain(
    folder: Path,
    games: Sequence[Episode],
    recipe: Recipe,
    info: bases.ModelInfo,
    words: Sequence[str] = (),
    stages: Sequence[Stage] = (Stage(),),
    on_progress: Callable[[float], None] = lambda _: None,
) -> None:
    """Train a tokenizer and a model by the recipe on `games`, and write them into the existing `folder`.

    Each of `words` is always tokenized separately, for instance names that the model must copy. The model reads the
    games once per stage. `on_progress` is called with the share of the work done.
    """
    from training.learn.models import save
    from training.learn.sft.data import plan
    from training.learn.sft.fit import fit
    from training.text.template import ChatTokenizer

    tokenizer = make_tokenizer(_texts(_evenly(games)), recipe, words)
    model, chat = make_model(tokenizer, recipe), ChatTokenizer(tokenizer)
    read = []
    for number, stage in enumerate(stages):
        begun = partial(_reading, on_progress, number, len(stages))
        staged = stage.of(recipe)
        seat_traces = list(_traces(games, chat, staged, stage.traced, begun))
        log.info("%d games, %d tokens", len(games), sum(len(trace.tokens) for trace in seat_traces))
        read.append((seat_traces, plan([len(t.tokens) for t in seat_traces], staged.sft, recipe.seed), staged.sft))
    hooks = _ProgressHooks(on_progress, sum(len(batches) for _, batches, _ in read))
    for seat_traces, batches, sft in read:
        fit(model, tokenizer, seat_traces, batches, sft, hooks)
    save(model, tokenizer, folder, info)


def _reading(on_progress: Callable[[float], None], stage: int, stages: int, done: float) -> None:
    on_progress(READING * (stage + done) / stages)


class _ProgressHooks:
    """Hooks of a fit that report progress by the share of batches read."""

    def __init__(self, on_progress: Callable[[float], None], batches: int) -> None:
        self.on_progress, self.batches, self.done = on_progress, batches, 0

    def on_batch(self) -> None:
        """Count one batch."""
        self.done += 1
        self.on_progress(READING + (1 - READING) * min(1.0, self.done / self.batches))

    def on_begin(self, optimizer: object) -> None:
        """Do nothing."""

    def on_update(self, step: int, metrics: dict[str, float]) -> None:
        """Do nothing: progress counts batches."""


def _traces(
    games: Sequence[Episode],
    chat: ChatTokenizer,
    recipe: Recipe,
    traced: Traced,
    on_progress: Callable[[float], None],
) -> Iterator[Trace]:
    """Yield all seats' traces with a share of the observation tokens as targets, except in a dialogue's rules."""
    for number, game in enumerate(games):
        random = rng(recipe.seed, "context", number)
        for trace in traced(game, chat, window=recipe.sft.max_length):
            rules = 0 if game.scenario.game == "negotiation" else trace.tokens.index(chat.end_id)
            mask = tuple(
                int(sampled or (at > rules and random.random() < recipe.context))
                for at, sampled in enumerate(trace.mask)
            )
            yield trace.model_copy(update={"mask": mask})
        on_progress((number + 1) / len(games))


def _evenly(games: Sequence[Episode]) -> list[Episode]:
    """Return the same number of games of each kind, so that the tokenizer is trained on all kinds equally."""
    kinds: dict[str, list[Episode]] = {}
    for game in games:
        deal = game.scenario.settings.get("deal", {})
        kinds.setdefault(deal.get("kind", game.scenario.game), []).append(game)
    least = min(len(kind) for kind in kinds.values())
    return [game for kind in kinds.values() for game in kind[:least]]


def _texts(games: Sequence[Episode]) -> Iterator[str]:
    """Yield each seat's messages with their roles as text; the rules of a scenario and seat come only once.

    Rules are long and repeat: yielded for every game, they would use up the tokenizer's vocabulary.
    """
    from training.games import replay
    from training.text.messages import chat

    known_starts: set[str] = set()
    for game in games:
        state = replay(game.scenario, game.moves)
        for seat in range(len(game.scenario.seats)):
            rules, *rest = chat(state.observe(seat), seat, game.scenario.seats)
            start = f"{game.scenario.id} {seat}"
            if start not in known_starts:
                known_starts.add(start)
                yield f"{rules['role']}\n{rules['content']}"
            for message in rest:
                yield f"{message['role']}\n{message['content']}"


def make_tokenizer(texts: Iterator[str], recipe: Recipe, words: Sequence[str] = ()) -> PreTrainedTokenizerBase:
    """Return a byte-level BPE tokenizer with a ChatML template, trained on `texts`; `words`, digits stay separate."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    raw = Tokenizer(models.BPE())
    apart = (*APART, rf"\b({'|'.join(map(re.escape, words))})\b") if words else APART
    split = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in apart]
    raw.pre_tokenizer = pre_tokenizers.Sequence(
        [*split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    raw.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    raw.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=recipe.vocabulary,
            special_tokens=list(SPECIAL),
            initial_alphabet=sorted(alphabet),
            show_progress=False,
        ),
    )
    end, _, stop = SPECIAL
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, bos_token=end, eos_token=stop, pad_token=end)
    tokenizer.chat_template = CHATML
    return tokenizer


def make_model(tokenizer: PreTrainedTokenizerBase, recipe: Recipe) -> LlamaForCausalLM:
    """Return the untrained model."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=recipe.hidden,
        intermediate_size=recipe.mlp,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.groups,
        head_dim=recipe.hidden // recipe.heads,
        max_position_embeddings=recipe.window,
        initializer_range=recipe.spread,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        return LlamaForCausalLM(config)
