"""A whole run of listening and speaking in Among Us, with constrained decoding, a fixed imposter and a partner."""

import numpy as np

from tests.learn.small_runs import make_run
from tests.learn.test_probes import records
from tests.learn.test_trainer import lines
from tests.toy_models import write_random_llama
from training.games import make
from training.learn import trainer
from training.records import LEARNER, Episode, Scenario
from training.store import dumps

SETTINGS = {"width": 2, "height": 1, "tasks": 2, "cooldown": 1, "rounds": 24, "discussion": 1, "words": 6}
START = Scenario(id="ship", game="among_us", seats=("Ada", "Ben", "Cia", "Dan"), settings=SETTINGS)


def run(tmp_path):
    rules = "".join(message.text for seat in range(4) for message in make(START.with_seed(1)).observe(seat).messages)
    write_random_llama(tmp_path / "model", window=4096, known=rules)
    (tmp_path / "data.jsonl").write_text(dumps(START.to_dict()) + "\n")
    config, run_dir = make_run(
        tmp_path,
        game={"name": "among_us", "settings": {}},
        sampling={"max_tokens": 12, "constrain": True},
        opponents=[{"source": "start", "learner": ["crewmate"], "partner": "start"}],
        rollout={"scenarios": 6, "games": 1},
        reward={"scale": "raw"},
        method={"name": "listen_speak", "kl_on": "messages"},
        learn={"steps": 3, "lr": 1e-2, "critic_warmup": 0, "save_every": 3, "kl": "k1", "kl_coef": 0.05},
        stop={"failing": 1.0, "kl_ceiling": 1e6, "advantage_drift": 0.0, "entropy_fall": 0.0},
    )
    return trainer.run(config, run_dir), run_dir


def test_a_crew_acts_listens_and_speaks(tmp_path):
    result, run_dir = run(tmp_path)
    assert result["result"] == "succeeded", result["why"]
    metrics = lines(run_dir.attempt(1).metrics)
    assert all(line["nll_loss"] > 0 != line["ppo_loss"] for line in metrics)
    asked, actions, messages, fixed = set(), 0, 0, 0
    for step, record in records(run_dir):
        episode = Episode.from_dict(record["episode"])
        imposter = episode.roles.index("imposter")
        for number, (trace, credit) in enumerate(zip(episode.traces, record["credit"], strict=True)):
            assert (credit is None) == (trace.policy != LEARNER)
            assert trace.policy != LEARNER or trace.seat != imposter
            if credit is None or "advantages" not in credit:
                continue
            assert number == trace.seat or trace.parent
            for index in set(trace.turn) - {-1}:
                at = [place for place, turn in enumerate(trace.turn) if turn == index]
                spoken = {credit["advantages"][place] for place in at}
                if trace.choices.keys() & set(at):
                    assert len(spoken) == 1, "the tokens of an action share an advantage"
                    actions += 1
                else:
                    assert episode.turns[index].move is None or episode.turns[index].move.action == "talk"
                    messages += 1
        for belief in episode.beliefs:
            assert belief.seat != imposter
            if episode.traces[belief.trace].policy != LEARNER:
                fixed += 1
                continue
            asked.add(step)
            nll = np.array(record["credit"][belief.trace]["nll"])
            assert np.flatnonzero(nll).tolist() == list(range(*belief.span))
    assert actions > 100
    assert messages > 5
    assert fixed > 5, "the partner is asked, and learns nothing"
    assert asked == {1, 2, 3}, "there was a meeting in every step"
    losses = [line["nll_loss"] for line in metrics]
    assert losses[2] < 0.9 * losses[0], "answers and observations become likelier"
