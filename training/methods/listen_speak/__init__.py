"""Listening and speaking: PPO on the game's reward, answers to probes as targets, a reward for convincing messages.

Source: "Training Language Models for Social Deduction with Multi-Agent Reinforcement Learning". `config` has the
parameters and variants, `messages` finds the messages and what they changed in beliefs, `credit` is the method.
`docs/methods/listen_speak.md` has the equations and lists where the method departs from the paper and why.
"""

from __future__ import annotations

from training.methods.listen_speak.config import ListenSpeakConfig
from training.methods.listen_speak.credit import ListenSpeak

__all__ = ["ListenSpeak", "ListenSpeakConfig"]
