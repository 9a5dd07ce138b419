"""The configuration of listening and speaking: the variant and its weights."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from training.errors import BadInput
from training.methods.base import MethodConfig
from training.methods.listen_speak.credit import ListenSpeak


class ListenSpeakConfig(MethodConfig):
    """Which parts of the loss are on, and how they are weighed."""

    summary: ClassVar[str] = (
        "Games of deduction: PPO, answers to probes as targets, and a reward for convincing messages."
    )

    name: Literal["listen_speak"] = Field(
        default="listen_speak", description="The method: listening and speaking rewards in games of deduction."
    )
    variant: Literal["base", "L", "RL", "RL+L", "RL+L+S"] = Field(
        default="RL+L+S",
        description="What is learned. L: the answers to probes. RL: from the game's reward. RL+L: both. RL+L+S: also "
        "from a reward for what messages change in the listeners' beliefs. base: nothing; it cannot be trained. All "
        "but base have the world model.",
    )
    gamma: float = Field(
        default=0.99, ge=0, le=1, description="Discount from an action to the next step; messages are not discounted."
    )
    lam: float = Field(
        default=0.95, ge=0, le=1, description="GAE's λ from step to step: an action, or a token of a message."
    )
    message_weight: float = Field(
        default=0.2, ge=0, le=1e3, description="Weight of the policy loss at tokens of messages; that of actions is 1."
    )
    kl_on: Literal["messages", "all"] = Field(
        default="messages",
        description="Where the KL penalty against the reference applies (learn.kl = k1): at tokens of messages, or at "
        "all tokens.",
    )
    listening: float = Field(
        default=3.0, ge=0, le=1e6, description="Weight λ_L of the listening loss: the mean of −log π(right answer)."
    )
    speaking: float = Field(
        default=1.0,
        ge=0,
        le=1e6,
        description="Weight λ_S of the reward for what a message changes in the listeners' probabilities of the truth.",
    )
    world_model: float = Field(
        default=1.0,
        ge=0,
        le=1e6,
        description="Weight λ_WM of the world model: the mean of −log π of the tokens that are read after a turn.",
    )

    @property
    def reinforces(self) -> bool:
        """Whether the policy learns from rewards."""
        return self.variant.startswith("RL")

    @property
    def answers_weight(self) -> float:
        """The weight of the listening loss; 0 in variants without it."""
        return self.listening if self.variant in ("L", "RL+L", "RL+L+S") else 0.0

    @property
    def speaking_weight(self) -> float:
        """The weight of the speaking reward; 0 in variants without it."""
        return self.speaking if self.variant == "RL+L+S" else 0.0

    @property
    def observations_weight(self) -> float:
        """The weight of the world model; 0 for `base`."""
        return 0.0 if self.variant == "base" else self.world_model

    def build(self) -> ListenSpeak:
        """Return the method."""
        return ListenSpeak(self)

    def check(self, reward_low: float, replays: int) -> None:
        """Refuse to train what does not learn."""
        if self.variant == "base":
            raise BadInput("base is the model as it is, which can be evaluated but not trained", "variant")
        if not (self.reinforces or self.answers_weight or self.observations_weight):
            raise BadInput("without listening and world_model the variant L learns nothing", "listening")
