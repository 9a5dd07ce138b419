"""That the whole of it learns: a random model comes to write what the reward pays for, and nothing else pays."""

import pytest

from tests.learn.small_runs import make_run
from training.evaluate.during import during
from training.learn import trainer
from training.records import Scenario
from training.rewards.base import Score
from training.rewards.rules import Ruled
from training.store import dumps, read_lines


async def letters(self, episode, seed):
    """Pay each seat the share of plain letters in all that it wrote."""
    texts = ["".join(turn.reply for turn in episode.turns if turn.seat == seat) for seat in (0, 1)]
    shares = {
        seat: sum(c.isascii() and c.isalpha() for c in text) / max(1, len(text)) for seat, text in enumerate(texts)
    }
    return Score(shares, (True,) * len(episode.turns))


@pytest.mark.slow
@pytest.mark.parametrize("planted", [True, False])
def test_the_watchdog_sees_a_reward_that_rises_where_no_head_to_head_does(tmp_path, monkeypatch, planted):
    """Paid for letters the model comes to write them; unplanted, it is paid for legal replies and plays on."""
    if planted:
        monkeypatch.setattr(Ruled, "score", letters)
    starts = (Scenario(id=f"k{n}", game="kuhn_poker", seats=("Ada", "Ben"), seed=100 + n) for n in range(12))
    held_out = tmp_path / "held_out.jsonl"
    held_out.write_text("".join(dumps(start.to_dict()) + "\n" for start in starts), "utf-8")
    learn = {"steps": 14, "lora": None, "lr": 5e-3, "critic_lr": 0.01, "critic_warmup": 2, "save_every": 50}
    config, run_dir = make_run(
        tmp_path,
        babble="bytes",
        game={"name": "kuhn_poker", "settings": {}},
        data={"path": ""},
        opponents=[{"source": "past"}],
        learn={**learn, "kl": "none"},
        rollout={"scenarios": 4, "games": 4, "past_saved": 1, "retries": 0},
        reward={} if planted else {"malformed": -0.5},
        sampling={"max_tokens": 8},
        evaluate={"every": 14, "conversations": 24, "path": str(held_out)},
        stop={"entropy_fall": 0, "advantage_drift": 0, "kl_ceiling": 1e6},  # it is to go as far as it can
    )
    result = trainer.run(config, run_dir, evaluate=during)
    assert (result["result"], result["step"]) == ("stopped" if planted else "succeeded", 14)
    if planted:
        assert result["why"].startswith("held-out gap")
        rewards = [line["reward"] for line, _ in read_lines(run_dir.attempt(1).metrics)]
        assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.25
