"""The sections of a run's configuration that belong to no single part: data, sampling, learning, stopping.

Plain pydantic without torch. Every field has a description: the site builds its forms from the JSON schema.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from training import bases
from training.engines.base import LONGEST_REPLY, Sampling
from training.reading import Record
from training.sections import MOST_STEPS, Decay, Dtype, LoraConfig, MaybeLora, Names, Text


class ModelSection(Record):
    """Which weights a run starts from."""

    base: str = Field(
        default=bases.DEFAULT,
        min_length=1,
        max_length=4096,
        description="A base model's name, or the folder of a model or checkpoint.",
    )
    device: str = Field(
        default="auto",
        pattern=r"^(auto|cpu|cuda(:\d+)?)$",
        description="Where the weights are trained: cpu, cuda, cuda:1; auto = cuda where there is one.",
    )


class EngineSection(Record):
    """What samples the replies."""

    name: Literal["auto", "vllm", "transformers"] = Field(
        default="auto", description="auto = vLLM where it is installed, else Transformers."
    )
    dtype: Dtype = Field(default="float32", description="Number format of the sampling weights.")
    window: int = Field(
        default=0,
        ge=0,
        le=2**20,
        description="Longest prompt and reply together, in tokens; older messages are dropped. 0 = the model's limit.",
    )
    max_running: int = Field(default=64, ge=1, le=4096, description="Most replies that an engine samples at once.")
    cache_gib: float = Field(
        default=1.0,
        gt=0,
        le=1024,
        description="Memory for the KV cache (keys and values of prompts and replies), in GiB.",
    )


class SamplingSection(Sampling):
    """How replies are sampled. The trained policy is softmax(logits / temperature) over the whole vocabulary."""

    temperature: float = Field(
        default=1.0, gt=0, le=5, description="Softmax temperature: 1 = the model's distribution; lower is more certain."
    )
    top_p: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="Nucleus sampling: the most likely tokens up to this probability mass. The loss ignores it.",
    )
    top_k: int = Field(
        default=0, ge=0, le=10**6, description="Sample from this many most likely tokens; 0 = all. The loss ignores it."
    )
    max_tokens: int = Field(default=128, ge=1, le=LONGEST_REPLY, description="Longest reply in tokens.")
    stop: tuple[Text, ...] = Field(
        default=(), max_length=16, description="Texts that end a reply, in addition to the model's end of turn."
    )
    constrain: bool = Field(
        default=False,
        description="Sample legal moves only, without reasoning, where a seat's moves can be listed: at most 256, and "
        "none with free text for others. The policy is renormalised over them. Remote models are not constrained.",
    )


SELF = "self"
"""The source of a speaker that is the strategist itself: one model writes strategies and replies."""


class SpeakerSection(Record):
    """The speaker, which writes the replies at seats of models; each model then only advises it, as a strategist."""

    source: str = Field(
        default="",
        max_length=500,
        description="The speaker, whose weights stay as they are: a model's name or folder, ADDRESS MODEL [SECRET], or "
        "follower:N, which follows N % of the strategies that name a move and otherwise moves at random. self = each "
        "model writes its strategy and its reply in one answer, and all of it is trained. Empty = models write their "
        "replies themselves, without strategies.",
    )
    alone: Literal["plain", "react"] = Field(
        default="plain",
        description="How the speaker plays without a strategist (as opponent or measured model: speaker). react = it "
        "writes a strategy of its own before each reply.",
    )
    label: Literal["Strategy", "Thought"] = Field(default="Strategy", description="What a strategy begins with.")
    words: int = Field(default=10, ge=1, le=200, description="Longest strategy, in words; the speaker reads no more.")
    temperature: float | None = Field(
        default=None,
        ge=0,
        le=5,
        description="The speaker's sampling temperature; 0 = greedy, empty = sampling.temperature.",
    )
    max_tokens: int = Field(default=128, ge=1, le=LONGEST_REPLY, description="The speaker's longest reply in tokens.")
    constrain: bool = Field(
        default=False, description="The speaker samples legal moves only, as with sampling.constrain."
    )

    @property
    def react(self) -> bool:
        """Whether a model at a seat writes strategy and reply in one answer."""
        return self.source == SELF


class TeacherSection(Record):
    """Who plays the learner's seats in its place; the learner then learns from strategies that it has not sampled."""

    source: str = Field(
        default="",
        max_length=500,
        description="The teacher: a model's name or folder, ADDRESS MODEL [SECRET], or a player such as scripted, "
        "whose strategies name its moves. Empty = the learner plays itself.",
    )
    speaks: bool = Field(
        default=True,
        description="The teacher writes replies as well as strategies; a model first reasons, in private. Off = it "
        "only advises the speaker, which moves.",
    )
    temperature: float | None = Field(
        default=None,
        ge=0,
        le=5,
        description="The teacher's sampling temperature; 0 = greedy, empty = sampling.temperature.",
    )
    max_tokens: int = Field(
        default=512, ge=1, le=LONGEST_REPLY, description="The teacher's longest answer in tokens, reasoning included."
    )


class SearchSection(Record):
    """The indexes that seats of qa_society search."""

    indexes: dict[str, str] = Field(
        default_factory=dict,
        description="For each corpus that a scenario names as a tool, its index: the name or folder that `python -m "
        "training index` prints. On the site a corpus by its name, or NAME dense for its vectors. The corpora of the "
        "samples need none.",
    )
    passages: int = Field(default=3, ge=1, le=100, description="Most passages that a search returns.")


class GameSection(Record):
    """Which game is played."""

    name: str = Field(default="negotiation", max_length=200, description="The game.")
    settings: dict[str, Any] = Field(
        default_factory=dict, description="Settings that replace those of every scenario, such as turn_limit."
    )


class DataSection(Record):
    """Where starts (or, for a cold start, conversations) come from."""

    path: str = Field(
        default="", max_length=4096, description="A dataset file (JSONL). Empty = the sample dataset of the game."
    )
    limit: int = Field(
        default=0, ge=0, le=10**9, description="Use only this many scenarios from the beginning; 0 = all."
    )
    shuffle: bool = Field(default=True, description="A new order in every pass over the data, drawn from the seed.")


MOST_GAMES = 16_384
"""Most games of one training step: scenarios × games."""


class RolloutSection(Record):
    """How many games a step plays, and what happens to a refused reply."""

    scenarios: int = Field(default=8, ge=1, le=4096, description="Scenarios per training step.")
    games: int = Field(default=1, ge=1, le=256, description="Games from each scenario within a step.")
    lanes: int = Field(default=0, ge=0, le=2**16, description="Games in flight at once; 0 = all of the step.")
    retries: int = Field(default=0, ge=0, le=5, description="Further tries after a refused reply.")
    on_refused: Literal["default", "forfeit"] = Field(
        default="default", description="After the last refused try: the game's default move, or the seat gives up."
    )
    probes: bool = Field(
        default=False,
        description="After every move, score what seats with local models would answer to the game's questions; "
        "the game is not affected.",
    )
    random_moves: bool = Field(
        default=False,
        description="The learner's moves are drawn uniformly where they can be listed (sampling.constrain); nothing is "
        "learned from them. Its free text is still sampled. Opponents and head-to-heads are not affected.",
    )
    keep_unfinished: bool = Field(
        default=False,
        description="Keep the games of an unfinished step on disk, with their scores, until it is saved: a run that "
        "stops while it plays or scores a step goes on with the games that are missing. For steps of many games.",
    )
    past_saved: int = Field(
        default=4,
        ge=1,
        le=1000,
        description="Opponents with source `past` are drawn from this many of the newest saved steps (multiples of "
        "learn.save_every; 0 = the start), which are never deleted.",
    )
    past_loaded: int = Field(
        default=1,
        ge=1,
        le=64,
        description="Past checkpoints in memory at once, drawn for every step; one engine each, or one for all "
        "where they are adapters.",
    )


class MixtureEntry(Record):
    """One game of a mixture."""

    game: str = Field(max_length=200, description="The game.")
    weight: float = Field(default=1.0, gt=0, le=1e6, description="Its share of the scenarios, relative to the others.")
    path: str = Field(
        default="",
        max_length=500,
        description="A dataset file. Empty = data.path; without one, the sample dataset of the game.",
    )
    settings: dict[str, Any] = Field(default_factory=dict, description="Settings that replace those of every scenario.")


class EvaluateSection(Record):
    """The head-to-head: two models play the same scenarios in both seatings."""

    every: int = Field(
        default=0, ge=0, le=MOST_STEPS, description="Training steps between head-to-heads during a run; 0 = none."
    )
    at_end: bool = Field(
        default=False,
        description="Play one after the last training step, too, and report it as a head-to-head by itself does.",
    )
    conversations: int = Field(
        default=100, ge=2, le=100_000, description="Conversations per head-to-head, both seatings counted."
    )
    model: str = Field(
        default="",
        max_length=4096,
        description="For a run of kind eval: the model that is evaluated; empty = model.base.",
    )
    opponent: str = Field(
        default="", max_length=4096, description="The other model; empty = what the run started from."
    )
    path: str = Field(
        default="", max_length=4096, description="Dataset with the evaluation scenarios; empty = data.path."
    )
    temperature: float | None = Field(
        default=None, gt=0, le=5, description="Sampling temperature of all models; empty = sampling.temperature."
    )
    judge: bool = Field(default=False, description="Let the judge score each conversation.")
    nashconv: tuple[Literal["kuhn_poker", "leduc_poker"], ...] = Field(
        default=(),
        max_length=2,
        description="Games in which a training run measures NashConv and exploitability of the policy, as curves.",
    )
    nashconv_every: int = Field(
        default=10,
        ge=1,
        le=MOST_STEPS,
        description="Training steps between two measurements of evaluate.nashconv; the last step is always measured.",
    )
    side: Names = Field(
        default=(),
        description="Roles that each model plays in turn, such as werewolf, in the same scenarios. Empty = each model "
        "plays half of the seats, then they swap.",
    )
    opposition: Literal["common", "each_other"] = Field(
        default="common",
        description="With a side, who plays all other seats: common = the same opponent against both models. "
        "each_other = the other model, whose skill in the other roles then enters the comparison.",
    )
    common: str = Field(
        default="",
        max_length=4096,
        description="The common opponent. Empty = what the run started from (model.base), or the opponent, where "
        "model.base itself is evaluated.",
    )


class CalibrationSet(Record):
    """Questions that a single agent answers with each of the tools."""

    label: str = Field(min_length=1, max_length=100, description="The set's name in reports, such as PopQA.")
    path: str = Field(
        default="",
        max_length=4096,
        description="A dataset file (JSONL) with scenarios of qa_society; on the site a dataset, by NAME or NAME v2. "
        "Empty = the sample dataset.",
    )
    tools: Names = Field(
        default=("",),
        min_length=1,
        description="The corpora that the agent can search, one for each measurement; an empty name = no search.",
    )
    in_distribution: bool = Field(
        default=True, description="Whether the questions are like those that the model trains on; reports say so."
    )
    limit: int = Field(
        default=0, ge=0, le=10**6, description="Use only this many questions from the beginning; 0 = all."
    )


class CalibrationSection(Record):
    """How well a single agent of qa_society decides when to search and when to answer, by question set and tool."""

    sets: tuple[CalibrationSet, ...] = Field(
        default=(),
        max_length=50,
        description="The question sets, each with label, path, tools, in_distribution and limit, such as "
        '{"label": "PopQA", "path": "popqa", "tools": ["wiki"]}; empty = calibration is not measured.',
    )
    every: int = Field(
        default=1,
        ge=1,
        le=MOST_STEPS,
        description="Training steps between two evaluations; the starting model and the last step are always measured.",
    )
    base: str = Field(
        default="",
        max_length=500,
        description="The model whose answers with and without a search enter the search curves: a name or folder. "
        "Empty = the model from which the run started.",
    )
    draws: int = Field(default=1, ge=1, le=100, description="Games per question and condition; their mean counts.")
    limited: bool = Field(
        default=True,
        description="The agent's action is sampled among the legal ones, then its text. Off = whole replies are "
        "sampled, as in training, and may be refused.",
    )
    temperature: float | None = Field(
        default=None,
        ge=0,
        le=5,
        description="Sampling temperature of the agents; 0 = greedy, empty = sampling.temperature.",
    )


class CriticSection(Record):
    """The value heads: what they read and how they are fitted. Their targets and features are normalised."""

    kind: Literal["ridge", "linear", "mlp"] = Field(
        default="ridge",
        description="ridge = least squares with a penalty, solved after every step from the moments of recent steps. "
        "linear, mlp = a linear layer, or two layers, trained by learn.critic_passes updates per step.",
    )
    features: Literal["policy", "start"] = Field(
        default="policy",
        description="Hidden states that the heads read: of the policy as it learns, or of the frozen starting model, "
        "whose states never drift but take a forward pass of their own.",
    )
    hidden: int = Field(default=64, ge=1, le=4096, description="Width of the hidden layer of kind mlp.")
    memory: int = Field(
        default=20,
        ge=1,
        le=10_000,
        description="Horizon of the running statistics in steps: they decay by 1/memory per step.",
    )


class LearnSection(Record):
    """The update: optimizer, loss terms and checkpoints."""

    steps: int = Field(default=50, ge=1, le=MOST_STEPS, description="Training steps: play, score, update.")
    lora: MaybeLora = Field(default=LoraConfig(), description="LoRA adapters; none = all weights are trained.")
    dtype: Dtype = Field(default="float32", description="Number format of the frozen weights under adapters.")
    autocast: bool = Field(
        default=False, description="Mixed precision: compute in bfloat16; weights and updates keep their own format."
    )
    lr: float = Field(default=1e-5, gt=0, le=10, description="Peak learning rate of the policy.")
    warmup: int = Field(default=0, ge=0, le=MOST_STEPS, description="Warm-up steps of the policy's learning rate.")
    critic: CriticSection = Field(default=CriticSection(), description="The value heads.")
    critic_lr: float | None = Field(
        default=None,
        gt=0,
        le=100,
        description="Learning rate of value heads of kind linear or mlp; empty = 10 × lr. Where explained_variance "
        "falls below 0, lower it.",
    )
    critic_passes: int = Field(
        default=16,
        ge=1,
        le=1000,
        description="Updates of value heads of kind linear or mlp from the hidden states of one step.",
    )
    critic_warmup: int = Field(
        default=10, ge=0, le=MOST_STEPS, description="Steps at the beginning in which only the value heads learn."
    )
    critic_backbone: bool = Field(default=False, description="Backpropagate the value loss into the policy's layers.")
    schedule: Literal["constant", "linear", "cosine"] = Field(
        default="constant", description="Learning rate schedule after warm-up."
    )
    betas: tuple[Decay, Decay] = Field(default=(0.9, 0.95), description="Betas of AdamW.")
    weight_decay: float = Field(default=0.0, ge=0, le=100, description="Weight decay of AdamW.")
    max_grad_norm: float = Field(default=1.0, gt=0, le=1e12, description="Gradient clipping: the largest norm.")
    epochs: int = Field(default=1, ge=1, le=16, description="Epochs: passes over a step's games.")
    tokens_per_update: int = Field(
        default=0, ge=0, le=10**9, description="Tokens per optimizer update; 0 = the whole step."
    )
    trajectories_per_update: int = Field(
        default=0,
        ge=0,
        le=10**6,
        description="Trajectories (one seat of one game) per optimizer update, in place of learn.tokens_per_update; "
        "0 = learn.tokens_per_update.",
    )
    anneal: Literal["run", "step"] = Field(
        default="run",
        description="run = learn.warmup and learn.schedule count the steps of the run, or of the phase. step = they "
        "count the updates of a step and start again in every step, for runs of few steps with many updates each.",
    )
    restart: bool = Field(
        default=False,
        description="Each step trains from the run's starting model, on games of the newest model.",
    )
    tokens_per_batch: int = Field(
        default=8192, ge=64, le=2**24, description="Tokens per forward pass, which limits memory use."
    )
    logits_chunk: int = Field(default=512, ge=1, le=2**20, description="Positions whose logits are in memory at once.")
    recompute: bool = Field(
        default=False,
        description="Gradient checkpointing: activations are recomputed in the backward pass; slower, less memory.",
    )
    offload_activations: bool = Field(
        default=False,
        description="Keep activations in the memory of the machine, not the GPU's, until the backward pass; slower, "
        "for long traces where learn.recompute is not enough. Without a GPU it changes nothing.",
    )
    aggregate: Literal["token_mean", "turn_mean", "player_mean"] = Field(
        default="token_mean",
        description="Average of the loss. token_mean = mean over all tokens. turn_mean = mean over the tokens of a "
        "turn, then the turns of a trajectory (one seat of one game), then trajectories. player_mean = turn_mean "
        "within each player (game and seat), then the mean over players.",
    )
    clip: float = Field(default=0.2, gt=0, le=1e6, description="PPO's clip range of the probability ratio.")
    dual_clip: float | None = Field(
        default=None, gt=1, le=1e6, description="Dual clip: bound of the ratio for negative advantages; empty = none."
    )
    importance_cap: float = Field(
        default=2.0,
        ge=1,
        le=1e6,
        description="Cap of the importance weight π_prox / π_behavior, of the policy before the step and the one that "
        "sampled (truncated importance sampling).",
    )
    importance_outlier: float = Field(
        default=0.0,
        ge=0,
        le=1e6,
        description="Tokens whose importance ratio is above this number or below its inverse are left out of the "
        "terms of PPO and REINFORCE, such as 2, where cluster.lag lets the two policies differ; 0 = none.",
    )
    vf_coef: float = Field(
        default=0.5,
        ge=0,
        le=1e6,
        description="Weight of the value loss where learn.critic_backbone is set.",
    )
    kl: Literal["none", "k1", "k2", "k3"] = Field(
        default="k2",
        description="KL divergence from the reference (the starting model, or what a phase names instead), by "
        "estimator: k1 as a penalty in the reward; k2, k3 in the loss; none = no KL term.",
    )
    kl_coef: float = Field(default=0.01, ge=0, le=1e6, description="Weight of the KL term; 0 = no penalty.")
    kl_measured: bool = Field(
        default=True,
        description="Measure the KL divergence even where its weight is 0, for stop.kl_ceiling. Off saves a forward "
        "pass (and, without adapters, a copy of the model) where learn.kl is none.",
    )
    ent_coef: float = Field(default=0.0, ge=0, le=1e6, description="Weight of the entropy bonus.")
    save_every: int = Field(default=10, ge=1, le=MOST_STEPS, description="Steps between checkpoints.")
    keep: int = Field(default=3, ge=1, le=MOST_STEPS, description="Number of newest checkpoints that are kept.")
    threads: int = Field(default=0, ge=0, le=1024, description="CPU threads; 0 = all cores.")
    deterministic: bool = Field(default=False, description="Use deterministic algorithms only.")

    @property
    def single_update(self) -> bool:
        """Whether every step makes one update."""
        return self.epochs == 1 and not (self.tokens_per_update or self.trajectories_per_update)

    @property
    def reads_reference(self) -> bool:
        """Whether the log-probabilities of the reference are computed in every step."""
        return self.kl != "none" or self.kl_measured

    @property
    def keeps_reference(self) -> bool:
        """Whether a frozen model is needed at all: for the reference's log-probabilities, or hidden states."""
        return self.reads_reference or self.critic.features == "start"


class StopSection(Record):
    """When a run ends early. A rule must hold for `patience` steps in a row, or for the mean of `average` steps."""

    failing: float = Field(
        default=0.8, gt=0, le=1, description="Stop when more than this share of turns fails; 1 = never."
    )
    entropy_rise: float = Field(
        default=1.0,
        gt=0,
        le=1e6,
        description="Stop when entropy rises in every step, in total by more than this share of its first value.",
    )
    kl_ceiling: float = Field(
        default=0.5,
        gt=0,
        le=1e6,
        description="Stop when the KL divergence from the reference exceeds this, in nats per token; "
        "unused where neither learn.kl nor learn.kl_measured computes it.",
    )
    hacking_failing: float = Field(
        default=0.3,
        gt=0,
        le=1,
        description="Reward hacking: stop when the reward is above its first values, although the share of failing "
        "turns is higher, or the share of parsable replies lower, by more than this; 1 = never.",
    )
    hacking_length: float = Field(
        default=4.0,
        gt=1,
        le=1e6,
        description="Reward hacking: stop when the reward is above its first values with replies more than this many "
        "times as long.",
    )
    entropy_fall: float = Field(
        default=0.55,
        ge=0,
        lt=1,
        description="Entropy collapse: stop when the mean entropy of the last `average` steps is below this share of "
        "the highest such mean within twice `patience` steps; 0 = never.",
    )
    legality_fall: float = Field(
        default=0.25,
        gt=0,
        le=1,
        description="Falling legality: stop when the share of parsable replies, as the mean of the last "
        "`average` steps, is lower by more than this than the highest such mean so far, in `average` steps in a row; "
        "1 = never.",
    )
    advantage_drift: float = Field(
        default=1.0,
        ge=0,
        le=1e6,
        description="Drifting advantages: stop when the mean advantage of the last `average` steps in which the policy "
        "learned is further from 0 than this many standard deviations: all tokens are pushed one way. 0 = never. Does "
        "not apply to methods whose advantages are positive by design (epo with baseline max).",
    )
    clipfrac: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="Stop when PPO clips more than this share of the tokens' weight, which says that a step moves the "
        "policy too far; 1 = never. One update per step clips nothing.",
    )
    silent: float = Field(
        default=0.8,
        gt=0,
        le=1,
        description="Silence: stop when more than this share of a learning role's messages are missing or next to "
        "empty, in games that count them (Among Us); 1 = never.",
    )
    waits: float = Field(
        default=0.8,
        gt=0,
        le=1,
        description="Waiting: stop when more than this share of a learning role's decisions are to wait, in games that "
        "count them (Among Us); 1 = never.",
    )
    held_out_gap: float = Field(
        default=0.25,
        gt=0,
        le=1e6,
        description="Held-out gap: stop when the reward has risen since its first values by more than this above what "
        "the model has gained over its start in the last head-to-head (evaluate.every), by the upper bound and in "
        "units of reward. Applies against past opponents, where the reward is the game's result: for the roles of "
        "evaluate.side, or one seat of a zero-sum game. A large number = never.",
    )
    average: int = Field(default=3, ge=1, le=MOST_STEPS, description="Steps in a moving average.")
    patience: int = Field(default=5, ge=1, le=MOST_STEPS, description="Steps in a row that a rule must hold.")
    bad_steps: int = Field(
        default=3, ge=1, le=MOST_STEPS, description="Steps in a row with NaN or infinity after which the run fails."
    )
