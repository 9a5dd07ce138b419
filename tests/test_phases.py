"""The phases of a run: what each changes, which weights they need, and what is refused before anything starts."""

import pytest

from training import config, phases
from training.errors import BadInput

WOLVES = {"learner": ["werewolf"]}
LISTEN = {"name": "L", "steps": 10, "learn": {"lr": 1e-3, "kl": "none"}, "method": {"gamma_turn": 0.5}}
SPEAK = {
    "name": "RL+L",
    "steps": 20,
    "opponents": [{"source": "phase L", **WOLVES, "partner": "start"}],
    "reference": "phase L",
}
TURNS = {"name": "turns", "steps": 20, "opponents": [{"source": "past", **WOLVES}], "learn": {"critic_warmup": 0}}
TAUGHT = {"teacher": {"source": "scripted", "speaks": False}}
THREE = {"learn": {"steps": 50, "save_every": 5, "critic_warmup": 4}, "phases": [LISTEN, SPEAK, TURNS]}


def test_a_phase_changes_the_runs_sections_and_no_other_phase():
    made = config.parse(THREE)
    listen, speak, turns = (made.of_phase(place) for place in range(3))
    assert [each.learn.steps for each in (listen, speak, turns)] == [10, 20, 20]
    assert (listen.learn.lr, listen.learn.kl, listen.method.gamma_turn) == (1e-3, "none", 0.5)
    assert (speak.learn, speak.method) == (made.learn.model_copy(update={"steps": 20}), made.method)
    assert (listen.opponents, [entry.source for entry in speak.opponents]) == ((), ["phase L"])
    assert [each.learn.critic_warmup for each in (listen, speak, turns)] == [4, 4, 0]
    assert config.parse(made.to_dict()) == made
    assert config.parse({}).of_phase(0) == config.parse({})


def test_a_phase_goes_on_from_the_one_before_or_from_an_earlier_one():
    made = config.parse(THREE | but(2, begin="phase L"))
    after = {step: phases.weights_after(made.phases, step) for step in (0, 10, 11, 29, 30, 31, 50)}
    assert after == {0: 0, 10: 10, 11: 11, 29: 29, 30: 10, 31: 31, 50: 50}
    assert 10 in made.past(30)
    assert phases.weights_after((), 7) == 7


def test_moves_are_drawn_in_the_phases_that_say_so():
    made = config.parse(THREE | but(0, rollout={"random_moves": True}) | {"sampling": {"constrain": True}})
    assert [made.of_phase(place).rollout.random_moves for place in range(3)] == [True, False, False]
    made = config.parse({"rollout": {"random_moves": True}, "sampling": {"constrain": True}})
    assert made.of_phase(0).rollout.random_moves


def test_phases_may_play_more_or_fewer_starts():
    made = config.parse(THREE | {"rollout": {"scenarios": 4}} | but(1, rollout={"scenarios": 7, "games": 2}))
    assert [made.of_phase(place).rollout.scenarios for place in range(3)] == [4, 7, 4]
    # 10 steps of 4 starts, then 20 of 7, then 20 of 4
    before = [phases.starts_before(made, step) for step in (1, 2, 10, 11, 12, 30, 31, 32, 50)]
    assert before == [0, 4, 36, 40, 47, 173, 180, 184, 256]
    assert [phases.starts_before(config.parse({}), step) for step in (1, 2, 4)] == [0, 8, 24]


def test_warm_up_may_count_the_updates_of_a_step():
    few = {"learn": {"steps": 2, "warmup": 5, "critic_warmup": 0}}
    with pytest.raises(BadInput, match="rises over 5 of the 2 steps"):
        config.parse(few)
    assert config.parse({"learn": {**few["learn"], "anneal": "step"}}).learn.warmup == 5


def test_a_phase_names_its_teacher():
    sections = {"speaker": {"source": "follower:50"}, "teacher": {"max_tokens": 99}, "method": {"name": "epo"}}
    plain = [{"name": name, "steps": 25} for name in ("round-0", "rounds")]
    made = config.parse({"learn": {"steps": 50}, **sections, "phases": [plain[0] | TAUGHT, plain[1]]})
    taught, rounds = made.of_phase(0).teacher, made.of_phase(1).teacher
    assert (taught.source, taught.speaks, taught.max_tokens) == ("scripted", False, 99)
    assert (rounds.source, rounds.max_tokens) == ("", 99)
    assert ("phases.0.teacher.source", "scripted") in list(made.sources())


def test_the_weights_that_a_step_and_later_ones_need():
    made = config.parse(THREE | {"rollout": {"past_saved": 2}})
    # phase L (step 10) is named until the end of RL+L (step 30); the last phase plays the newest two multiples of 5
    assert made.past(1) == (0,)
    assert made.past(11) == (5, 10)
    assert made.past(12) == (5, 10)
    assert made.past(21) == (10, 15, 20)
    assert made.past(31) == (25, 30)
    assert made.past(51) == (45, 50)
    assert config.parse({"learn": {"save_every": 5}}).past(31) == ()


def but(place, **changes):
    """The three phases, one of them with changes."""
    phases = [dict(phase) for phase in THREE["phases"]]
    phases[place] |= changes
    return {"phases": phases}


@pytest.mark.parametrize(
    "changes, where, why",
    [
        (
            {"opponents": [{"source": "past"}], "phases": [{**LISTEN, "opponents": []}, SPEAK, TURNS]},
            "opponents",
            "would never play",
        ),
        ({"learn": {"steps": 60}}, "learn.steps", "the phases add up to 50 steps"),
        (but(1, name="L"), "phases.1.name", "another phase is called 'L'"),
        (but(1, name="two words"), "phases.1.name", "pattern"),
        (but(1, steps=0), "phases.1.steps", "at least 1"),
        (but(1, reference="phase M"), "phases.1.reference", "no phase is called 'M'; there are L, RL[+]L, turns"),
        (but(1, reference="phase RL+L"), "phases.1.reference", "can name only phases before it, and 'RL[+]L' is not"),
        (but(0, reference="phase turns"), "phases.0.reference", "can name only phases before it, and 'turns' is not"),
        (but(1, reference="tiny"), "phases.1.reference", "start, or `phase NAME`"),
        (but(1, opponents=[{"source": "phase M"}]), "phases.1.opponents.0.source", "no phase is called 'M'"),
        (
            but(1, opponents=[{"source": "scripted"}, {"source": "past", **WOLVES, "partner": "phase turns"}]),
            "phases.1.opponents.1.partner",
            "can name only phases before it",
        ),
        ({"opponents": [{"source": "phase L"}]}, "opponents.0.source", "phase 'L' can name only phases before it"),
        (
            but(1, opponents=[{"source": "learner"}]),
            "phases.1.opponents.0.source",
            "the learner itself is named mirror",
        ),
        (but(1, method={"gama": 1}), "phases.1.method.gama", "omar has no such field; it has name, advantage"),
        (but(1, method={"gamma_turn": 2}), "phases.1.method.gamma_turn", "at most 1"),
        (but(1, method={"name": "mars"}), "phases.1.method.name", "the run's method, which stays the same"),
        (but(1, begin="phase turns"), "phases.1.begin", "can name only phases before it"),
        (but(0, begin="phase L"), "phases.0.begin", "can name only phases before it"),
        (but(1, begin="start"), "phases.1.begin", "nothing, or `phase NAME`"),
        (
            but(1, rollout={"lanes": 2}),
            "phases.1.rollout",
            "a phase cannot change 'lanes' of rollout; only scenarios, ",
        ),
        (but(1, rollout={"games": 4096}), "phases.1.rollout.games", "at most 256"),
        (but(1, rollout={"scenarios": 4096, "games": 5}), "phases.1.rollout.games", "20480 games in a step"),
        (but(1, teacher={"sorce": "scripted"}), "phases.1.teacher", "a phase cannot change 'sorce' of teacher"),
        (but(1, teacher={"source": "scripted"}), "phases.1.teacher.source", "a strategist learns"),
        (but(1, rollout={"random_moves": 3}), "phases.1.rollout.random_moves", "valid boolean"),
        (but(1, rollout={"random_moves": True}), "phases.1.rollout.random_moves", "set sampling.constrain"),
        ({"rollout": {"random_moves": True}}, "rollout.random_moves", "set sampling.constrain"),
        (
            {"learn": {**THREE["learn"], "critic_warmup": 10}},
            "learn.critic_warmup",
            "in the phase L, the policy would never",
        ),
        (but(1, learn={"betas": [0, 0]}), "phases.1.learn", "a phase cannot change 'betas' of learn; only lr, "),
        (but(1, learn={"lr": 0}), "phases.1.learn.lr", "greater than 0"),
        (but(1, learn={"critic_warmup": 20}), "phases.1.learn.critic_warmup", "the policy would never learn"),
        (
            {"league": {"every": 5}, "opponents": [{"source": "past"}]},
            "league.every",
            "the same opponents in the whole run",
        ),
    ],
)
def test_phases_that_cannot_work_are_refused(changes, where, why):
    with pytest.raises(BadInput, match=why) as caught:
        config.parse(THREE | changes)
    assert caught.value.where == where


EPO = {"method": {"name": "epo"}, "speaker": {"source": "follower:50"}}


@pytest.mark.parametrize(
    "sections, where, why",
    [
        ({"teacher": {"source": "scripted"}}, "teacher.source", "name a speaker.source"),
        ({**EPO, "teacher": {"source": "mirror"}}, "teacher.source", "mirror is no teacher"),
        ({**EPO, "method": {"name": "epo", "form": "sft"}}, "teacher.source", "imitates a teacher"),
        ({**EPO, "teacher": {"source": "speaker"}}, "teacher.source", "speaker is no teacher"),
        ({**EPO, "teacher": {"source": "nash"}}, "teacher.source", "nash plays kuhn_poker"),
        ({**EPO, "method": {"name": "omar"}, "teacher": {"source": "scripted"}}, "teacher.source", "itself has played"),
        (
            {**EPO, "speaker": {"source": "self"}, "teacher": {"source": "scripted", "speaks": False}},
            "teacher.speaks",
            "no speaker that it could advise",
        ),
    ],
)
def test_a_teacher_that_cannot_teach_is_refused_by_its_field(sections, where, why):
    with pytest.raises(BadInput, match=why) as caught:
        config.parse(sections)
    assert caught.value.where == where


def test_without_phases_none_can_be_named():
    with pytest.raises(BadInput, match="no phase is called 'L'; this run has no phases") as caught:
        config.parse({"opponents": [{"source": "past", **WOLVES, "partner": "phase L"}]})
    assert caught.value.where == "opponents.0.partner"


def test_folders_of_opponents_are_found_in_phases_too(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "start").mkdir()  # a name of the run's own stays that
    entry = {"source": "model", **WOLVES, "partner": "start"}
    made = config.resolve(config.parse(THREE | but(1, opponents=[entry], reference="start")), tmp_path)
    assert made.phases[1].opponents[0].sources == {"source": str(tmp_path / "model"), "partner": "start"}
    assert dict(made.sources()) == {
        "phases.1.opponents.0.source": str(tmp_path / "model"),
        "phases.1.opponents.0.partner": "start",
        "phases.2.opponents.0.source": "past",
    }
