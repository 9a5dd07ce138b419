"""Layouts: which process gets which GPU, what is chosen, and refusals with the field and the arithmetic."""

from contextlib import suppress
from dataclasses import replace

import pytest

from tests.cluster.advice import followed
from tests.cluster.decoders import TINY
from training.cluster import memory
from training.cluster.layout import DoesNotFit, as_dict, plan
from training.cluster.shapes import SHAPES, of_model
from training.config import CONFIGS, load, parse
from training.errors import BadInput

AUTO = {"engines": "auto", "learners": "auto"}
LARGE = {"lora": False, "autocast": True, "recompute": True}
"""All weights of a large model."""


def config(cluster=None, **sections):
    return parse({"cluster": cluster or {}, "engine": {"dtype": "bfloat16"}, **sections})


def places(layout):
    return {name: (node, gpus) for name, node, gpus, _ in layout.processes}


def test_one_gpu_has_everything():
    layout = plan(config(AUTO), TINY, 1, 80)
    assert places(layout) == {"driver": (0, ()), "learner 0": (0, (0,)), "engine 0": (0, (0,))}
    assert (layout.shared, layout.spare) == (True, ())
    assert (layout.section.learners, layout.section.engines) == (1, 1)


def test_eight_gpus_have_two_learners_and_six_engines():
    layout = plan(config(AUTO), TINY, 8, 80)
    assert places(layout) == {
        "driver": (0, ()),
        "learner 0": (0, (0,)),
        "learner 1": (0, (1,)),
        **{f"engine {number}": (0, (number + 2,)) for number in range(6)},
    }
    assert (layout.shared, layout.spare) == (False, ())


def test_four_nodes_have_a_node_of_learners_and_three_of_engines():
    layout = plan(config(AUTO), TINY, 32, 80)
    gpus_of = places(layout)
    assert [gpus_of[f"learner {number}"] for number in range(8)] == [(0, (number,)) for number in range(8)]
    assert [gpus_of[f"engine {number}"] for number in range(24)] == [
        (node, (gpu,)) for node in (1, 2, 3) for gpu in range(8)
    ]
    assert len(gpus_of) == 1 + 8 + 24


def test_two_gpus_have_one_each():
    assert places(plan(config(AUTO), TINY, 2, 80)) == {
        "driver": (0, ()), "learner 0": (0, (0,)), "engine 0": (0, (1,)),
    }  # fmt: skip


def test_a_large_model_takes_the_least_number_of_ranks_that_fits():
    # 20 bytes × 7,615,616,512 (weights, gradients, moments, reference) = 141.9 GiB: over 2 ranks 70.9, over 3 47.3.
    # Gathered: 2 bytes × (2 · 233,057,792 + 1,089,998,336) = 2.9 GiB; 6 bytes × (233,057,792 + 1,089,998,336) = 7.4.
    # 76 GiB are usable of 80, so that 2 ranks are too few.
    layout = plan(config(AUTO, learn=LARGE), SHAPES["7b"], 8, 80)
    assert (len(layout.learners), len(layout.engines)) == (3, 5)
    assert 47.3 + 2.9 + 7.4 < layout.learner.total / memory.GIB < 76


def test_stated_numbers_are_kept_and_unused_gpus_are_named():
    layout = plan(config({"engines": 3, "learners": 1}), TINY, 8, 80)
    assert (len(layout.learners), len(layout.engines)) == (1, 3)
    assert layout.spare == ((0, 4), (0, 5), (0, 6), (0, 7))
    layout = plan(config({"engines": 6, "learners": "auto"}), TINY, 8, 80)
    assert len(layout.learners) == 2
    layout = plan(config({"engines": 7, "learners": "auto"}), TINY, 8, 80)
    assert len(layout.learners) == 1  # as many as the engines leave


def test_a_run_in_one_process_uses_one_gpu():
    layout = plan(config(), TINY, 2, 80)
    assert (layout.shared, layout.spare) == (True, ((0, 1),))


def test_an_engine_of_several_gpus_lies_on_one_node():
    layout = plan(config({**AUTO, "tensor_parallel": 4}), TINY, 16, 80)
    # 16 // 4 = 4 learners; node 0 has 4 GPUs left, node 1 has 8
    assert layout.engines == (
        ((0, 4), (0, 5), (0, 6), (0, 7)),
        ((1, 0), (1, 1), (1, 2), (1, 3)),
        ((1, 4), (1, 5), (1, 6), (1, 7)),
    )
    layout = plan(config({"engines": "auto", "learners": 3, "tensor_parallel": 2}), TINY, 8, 80)
    assert (len(layout.engines), layout.spare) == (2, ((0, 7),))
    assert as_dict(layout)["spare"] == [{"node": 0, "gpu": 7}]


@pytest.mark.parametrize(
    "cluster, gpus, where, why",
    [
        ({"learners": 2}, 1, "cluster.learners", "2 are more than there are GPUs: 1"),
        ({"engines": 2}, 1, "cluster.engines", "2 are more than there are GPUs: 1"),
        ({"learners": 9}, 8, "cluster.learners", "9 learner ranks and 1 engine are more than there are GPUs: 8"),
        ({"learners": 4, "engines": 5}, 8, "cluster.engines", "4 learner ranks and 5 engines are more than"),
        ({"learners": "auto", "engines": 8}, 8, "cluster.engines", "8 engines and at least 1 learner rank are"),
        (
            {"learners": 2, "engines": 4, "tensor_parallel": 2},
            8,
            "cluster.engines",
            "2 learner ranks and 4 engines of 2 GPUs each are more than there are GPUs: 8",
        ),
        ({**AUTO, "tensor_parallel": 3}, 8, "cluster.tensor_parallel", "does not divide the 4 attention heads of tiny"),
        ({**AUTO, "tensor_parallel": 4}, 2, "cluster.tensor_parallel", "4 GPUs are more than the 2 of a node"),
        (
            {"learners": 9, "engines": 2, "tensor_parallel": 4},
            17,
            "cluster.engines",
            "there is room for 1 of 2 engines with 4 GPUs on one node each, beside 9 learner ranks on 17 GPUs",
        ),
    ],
)  # fmt: skip
def test_what_has_no_room_is_refused_by_its_field(cluster, gpus, where, why):
    with pytest.raises(BadInput) as caught:
        plan(config(cluster), TINY, gpus, 80)
    assert caught.value.where == where
    assert why in caught.value.why


def test_only_vllm_splits_a_model():
    with pytest.raises(BadInput, match="transformers does not split a model") as caught:
        plan(config({**AUTO, "tensor_parallel": 2}, engine={"name": "transformers"}), TINY, 8, 80)
    assert caught.value.where == "cluster.tensor_parallel"


def refused(run, shape, gpus, gib=80):
    with pytest.raises(DoesNotFit) as caught:
        plan(run, shape, gpus, gib)
    return caught.value


def advice(error):
    (shortfall,) = error.shortfalls
    return shortfall.advice


def test_a_rank_that_does_not_fit_shows_its_lines_and_what_would_fit():
    # 16 bytes × 4,022,468,096 = 59.9 GiB for one rank, and 15.0 of the reference, of 76
    run = config({"learners": 1, "engines": 7}, learn={"lora": False, "recompute": True, "tokens_per_batch": 1024})
    error = refused(run, SHAPES["4b"], 8)
    assert error.where == "cluster.learners"
    assert error.why.startswith("the learner needs ")
    assert "of a GPU with 80 GiB 76.0 are usable: weights 14.98 GiB (4 bytes × 4,022,468,096 para" in error.why
    assert advice(error)[0] == "cluster.learners = 2 and cluster.engines = 6"
    assert 'LoRA adapters on weights with learn.dtype = "bfloat16"' in advice(error)
    followed = [
        plan(config({"learners": 2, "engines": 6}, learn=dict(run.learn.to_dict())), SHAPES["4b"], 8, 80),
        plan(config({"learners": 1, "engines": 7}, learn={"recompute": True, "tokens_per_batch": 1024,
                                                          "dtype": "bfloat16"}), SHAPES["4b"], 8, 80),
    ]  # fmt: skip
    assert all(layout.learner.fits(80) for layout in followed)


def test_ranks_for_which_there_are_too_few_gpus_are_counted():
    # 20 bytes × 7,615,616,512 = 141.9 GiB over 2 ranks; 3 fit, see above
    error = refused(config(AUTO, learn=LARGE), SHAPES["7b"], 3)
    assert error.why.startswith("each of 2 learner ranks needs ")
    assert advice(error)[0] == "cluster.learners = 3 on at least 4 GPUs"


def test_of_a_batch_that_is_too_large_the_largest_that_fits_is_stated():
    run = config({"learners": 2, "engines": 6}, learn={"lora": False, "autocast": True, "tokens_per_batch": 131072})
    error = refused(run, SHAPES["0.6b"], 8)
    (words,) = (each for each in advice(error) if each.startswith("learn.tokens_per_batch = "))
    tokens = int(words.rpartition(" ")[2])

    def at(tokens):
        return config({"learners": 2, "engines": 6}, learn={**run.learn.to_dict(), "tokens_per_batch": tokens})

    assert plan(at(tokens), SHAPES["0.6b"], 8, 80).learner.fits(80)
    assert not memory.learner(at(2 * tokens), SHAPES["0.6b"], 2).fits(80)
    assert "learn.recompute = true" in advice(error)


def test_an_engine_that_does_not_fit():
    # 4 bytes × 7,615,616,512 = 28.4 GiB of weights in float32
    learn = {"dtype": "bfloat16", "recompute": True}
    run = config({"learners": 4, "engines": 4}, engine={"dtype": "float32"}, learn=learn)
    error = refused(run, SHAPES["7b"], 8, 40)
    assert error.where == "engine"
    assert error.why.startswith("an engine needs ")
    assert advice(error)[0] == 'engine.dtype = "bfloat16"'
    assert "cluster.tensor_parallel = 2 and cluster.engines = 2" in advice(error)  # 28 heads, and 4 GPUs are left
    assert error.shortfalls[0].memory.total > 38 * memory.GIB


def test_an_engine_and_a_rank_that_do_not_fit_are_both_refused():
    # 4 bytes × 7,615,616,512 = 28.4 GiB for an engine, 4 times as much over 4 ranks for a rank, of 19
    run = config({"learners": 4, "engines": 4}, engine={"dtype": "float32"}, learn={"lora": False})
    error = refused(run, SHAPES["7b"], 8, 20)
    assert error.where == "engine"
    engine, rank = error.shortfalls
    assert [(each.process, each.where) for each in error.shortfalls] == [
        ("an engine", "engine"),
        ("each of 4 learner ranks", "cluster.learners"),
    ]
    assert engine.memory.total > 28.3 * memory.GIB
    assert rank.memory.total > 28.3 * memory.GIB
    assert engine.advice == ("cluster.tensor_parallel = 4 and cluster.engines = 1",)
    assert 'LoRA adapters on weights with learn.dtype = "bfloat16"' in " ".join(rank.advice)
    assert error.why.startswith("an engine needs ")
    assert (
        "would fit with cluster.tensor_parallel = 4 and cluster.engines = 1. Each of 4 learner ranks needs "
        in error.why
    )


def test_what_does_not_fit_on_one_gpu_may_fit_on_two():
    run = config(AUTO, learn={"dtype": "bfloat16", "recompute": True, "tokens_per_batch": 2048},
                 engine={"dtype": "bfloat16", "cache_gib": 50.0})  # fmt: skip
    error = refused(run, SHAPES["7b"], 1)
    assert error.where == "cluster"
    assert advice(error)[0] == "2 GPUs, one for the learner and one for the engine"
    assert plan(run, SHAPES["7b"], 2, 80).shared is False


def test_engines_of_other_models_need_memory_too():
    two = [{"source": "smollm2-135m"}, {"source": "qwen3-4b"}]
    alone, beside = (plan(config(AUTO, opponents=others), SHAPES["0.6b"], 1, 80) for others in ([], two))
    # 2 bytes × 596,049,920 and a cache of 1 GiB each
    assert beside.engine.total - alone.engine.total == 2 * (2 * 596_049_920 + memory.GIB)


def shortfalls(run, *machines):
    """The processes that do not fit."""
    try:
        plan(run, SHAPES["7b"], *machines)
    except DoesNotFit as error:
        return error.shortfalls
    return ()


@pytest.mark.parametrize("gpus, per_node", [(1, 8), (2, 8), (3, 8), (7, 8), (8, 8), (8, 4)])
@pytest.mark.parametrize("gib", [12, 24, 48])
@pytest.mark.parametrize(
    "section",
    [AUTO, {}, {"learners": 2, "engines": "auto"}, {"learners": "auto", "engines": 2}, AUTO | {"tensor_parallel": 2}],
    ids=str,
)
@pytest.mark.parametrize(
    "other", [{}, {"engine": {"name": "transformers"}}, {"opponents": [{"source": "smollm2-135m"}]}]
)
def test_what_is_advised_helps(section, other, gib, gpus, per_node):
    """It is not refused, but for another process, whose advice is another line."""
    engine = {"name": "vllm", "dtype": "float32", "cache_gib": 8.0} | other.get("engine", {})
    run = config(section, learn={"lora": False}, **other | {"engine": engine})
    first = ()
    with suppress(BadInput):  # numbers for which there are too few GPUs, which is said without advice
        first = shortfalls(run, gpus, gib, per_node)
    for shortfall in first:
        for words in shortfall.advice:
            if words.startswith("2 GPUs"):
                changed, enough = run, 2
            else:
                change, _, least = words.partition(" on at least ")
                changed, enough = followed(run, change), int(least.split()[0]) if least else gpus
            left = shortfalls(changed, enough, gib, per_node)  # which raises for numbers that have no room
            assert shortfall.where not in {each.where for each in left}, words


def test_more_gpus_of_an_engine_are_advised_beside_the_ranks_that_would_be_chosen():
    """The ranks do not fit either, and are as many as there can be: of 17 GPUs the last one is alone on its node."""
    run = config(
        {"learners": "auto", "engines": 1},
        engine={"name": "vllm", "dtype": "bfloat16", "cache_gib": 30.0},
        learn={"lora": {"rank": 64}, "dtype": "bfloat16", "tokens_per_batch": 65536},
    )
    engine, rank = refused(run, SHAPES["4b"], 17, 40).shortfalls
    assert rank.process == "each of 16 learner ranks"
    assert engine.advice == ("engine.cache_gib = 1", "cluster.tensor_parallel = 2 on at least 18 GPUs")
    with pytest.raises(BadInput, match="there is room for 0 of 1 engines with 2 GPUs on one node each"):
        plan(followed(run, "cluster.tensor_parallel = 2"), SHAPES["4b"], 17, 40)
    with pytest.raises(DoesNotFit) as caught:
        plan(followed(run, "cluster.tensor_parallel = 2"), SHAPES["4b"], 18, 40)
    assert [each.where for each in caught.value.shortfalls] == ["cluster.learners"]


def test_nothing_is_advised_that_does_not_help():
    error = refused(config(AUTO), SHAPES["7b"], 8, 2)
    assert [each.advice for each in error.shortfalls] == [(), ()]
    assert error.why.count("No setting that is tried here makes it fit") == 2


@pytest.mark.parametrize("name, gpus, learners, engines", [("8_gpus", 8, 2, 6), ("32_gpus", 32, 8, 24)])
def test_the_shipped_configurations_fit_their_gpus(name, gpus, learners, engines):
    run = load(CONFIGS / "omar" / f"werewolf_{name}.toml")
    layout = plan(run, of_model(run.model.base), gpus, 80)
    assert (len(layout.learners), len(layout.engines), layout.spare) == (learners, engines, ())
    chosen = plan(run.model_copy(update={"cluster": config(AUTO).cluster}), of_model(run.model.base), gpus, 80)
    assert (chosen.learners, chosen.engines) == (layout.learners, layout.engines)


def test_one_engine_and_one_rank_on_a_gpu_each_are_no_single_process():
    """Each fits its GPU; together they would not fit one."""
    run = config(AUTO, learn={"lora": False, "dtype": "bfloat16"}, engine={"dtype": "bfloat16", "cache_gib": 40.0})
    layout = plan(run, SHAPES["0.6b"], 2, 48)
    assert (layout.section.learners, layout.section.engines, layout.shared) == (1, 1, False)
    assert (layout.section.address, layout.section.alone) == ("local", False)
    again = plan(run.model_copy(update={"cluster": layout.section}), SHAPES["0.6b"], 2, 48)
    assert places(again) == places(layout)
    alone = refused(config({}, learn=run.learn.to_dict(), engine=run.engine.to_dict()), SHAPES["0.6b"], 2, 48)
    assert advice(alone)[0] == 'cluster.address = "local" on at least 2 GPUs'


def test_no_more_processes_are_chosen_than_a_configuration_may_state():
    section = plan(config(AUTO), SHAPES["0.6b"], 8192, 80).section
    assert (section.learners, section.engines) == (1024, 1024)


def test_ranks_that_would_need_more_than_fewer_of_them_are_not_chosen():
    """Several ranks gather embeddings and head, of which a single one has no copy."""
    wide = replace(TINY, layers=2, hidden=512, intermediate=512, vocabulary=256_000)
    small = {"dtype": "bfloat16", "max_running": 4, "cache_gib": 0.1}
    run = config(AUTO, learn={"lora": {"rank": 8}, "dtype": "bfloat16", "tokens_per_batch": 256}, engine=small)
    one, two = (memory.learner(run, wide, ranks).total for ranks in (1, 2))
    assert one < two
    gib = (one + two) / 2 / memory.GIB / 0.95
    assert plan(run, wide, 8, gib).section.learners == 1


def test_a_rank_and_an_engine_that_is_split_fill_the_gpus_of_a_node():
    layout = plan(config(AUTO | {"tensor_parallel": 2}), SHAPES["0.6b"], 7, 80)
    assert places(layout) == {
        "driver": (0, ()), "learner 0": (0, (0,)),
        "engine 0": (0, (1, 2)), "engine 1": (0, (3, 4)), "engine 2": (0, (5, 6)),
    }  # fmt: skip
