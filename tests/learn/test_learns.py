"""That the whole of it learns: a random model comes to write what the reward pays for, and nothing else pays."""

import pytest

from tests.learn.small_runs import make_run
from training import samples
from training.evaluate.during import during
from training.games import lookup
from training.learn import trainer
from training.rewards import per_return
from training.rewards.base import Score
from training.rewards.rules import Ruled
from training.store import dumps, read_lines


async def letters(self, episode, seed):
    """Pay each seat the share of plain letters in all that it wrote."""
    said = ["".join(turn.reply for turn in episode.turns if turn.seat == seat) for seat in (0, 1)]
    shares = {
        seat: sum(c.isascii() and c.isalpha() for c in text) / max(1, len(text)) for seat, text in enumerate(said)
    }
    return Score(shares, (0.0,) * len(episode.turns), (True,) * len(episode.turns))


@pytest.mark.slow
def test_the_reward_rises_and_the_watchdog_sees_that_no_head_to_head_does(tmp_path, monkeypatch):
    monkeypatch.setattr(Ruled, "score", letters)
    # not the rule of a negotiation in self-play, where both may earn more together; what is paid here is no such gain
    monkeypatch.setattr(trainer, "gain_worth", lambda config: per_return(config.reward, lookup("negotiation")))
    held_out = tmp_path / "held_out.jsonl"
    held_out.write_text("".join(dumps(start.to_dict()) + "\n" for start in samples.load("items")[3:15]), "utf-8")
    config, run_dir = make_run(
        tmp_path,
        babble="bytes",
        learn={
            "steps": 14,
            "lora": None,
            "lr": 5e-3,
            "critic_lr": 0.01,
            "critic_warmup": 2,
            "kl": "none",
            "save_every": 50,
        },
        rollout={"scenarios": 2, "games": 4},
        sampling={"max_tokens": 8},
        evaluate={"every": 14, "conversations": 24, "path": str(held_out)},
        # it is to go as far as it can; over 12 scenarios without a difference the upper bound is 0.26
        stop={"entropy_fall": 0, "advantage_drift": 0, "kl_ceiling": 1e6, "held_out_gap": 0.1},
    )
    result = trainer.run(config, run_dir, evaluate=during)
    assert (result["result"], result["step"]) == ("stopped", 14)
    assert result["why"].startswith("held-out gap")
    rewards = [line["reward"] for line, _ in read_lines(run_dir.attempt(1).metrics)]
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.25
