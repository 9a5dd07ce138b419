"""A pool of engines: the samples of one, also when engines die, hang or load weights; its status."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from tests.toy_models import write_adapter, write_random_llama
from training import engines
from training.cluster import processes
from training.cluster.reservation import Bundles
from training.cluster.supervisor import ProcessOptions
from training.engines.affinity import Affinity
from training.engines.base import SampleRequest, Sampling
from training.engines.chunks import cut
from training.engines.local.embedding import Embedder
from training.engines.pool import EnginePool
from training.engines.pool_loader import LoadedModel, PoolLoader
from training.engines.pooling import Pooling
from training.engines.slots import Gone, Slot
from training.errors import BadInput, EngineError, ProcessLost

pytestmark = pytest.mark.process
OPTIONS = {"max_running": 8, "cache_gib": 0.05}


@pytest.fixture(scope="module")
def ray_of_its_own():
    with processes.start() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return write_random_llama(tmp_path_factory.mktemp("toy") / "model")


def pool_of(toy, count=2, **options):
    return EnginePool("transformers", toy, ProcessOptions(count=count, threads=1, **options), **OPTIONS)


@pytest.fixture(scope="module")
def lasting(ray_of_its_own, toy):
    pool = pool_of(toy)
    yield pool
    asyncio.run(pool.close())


@pytest.fixture
async def pool(lasting, toy):
    """A pool for every test that leaves one serving: two engines, with the weights of the model's folder."""
    await until(lambda: [status.state for status in lasting.status()] == ["serving"] * 2)
    await lasting.load_weights(engines.make("transformers", toy, **OPTIONS)._model.named_parameters(), 0)
    return lasting


def restarts(pool):
    return [status.restarts for status in pool.status()]


def requests(count=12, max_tokens=60):
    return [
        SampleRequest([3 + (i + 7 * at) % 37 for at in range(20 + i)], Sampling(max_tokens=max_tokens), seed=i)
        for i in range(count)
    ]


async def tokens(engine, asked):
    return [sample.tokens for sample in await asyncio.gather(*(engine.sample(request) for request in asked))]


async def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "this took too long"
        await asyncio.sleep(0.05)


def sockets_of(pid):
    """The sockets that an engine's process has, or has left, in the folder for temporary files."""
    every = Path(tempfile.gettempdir()).glob(f"{processes.PREFIX}{pid}-*/*")
    return [path for path in every if path.is_socket()]


def changed(engine):
    return [(name, 1.3 * parameter.detach()) for name, parameter in engine._model.named_parameters()]


async def test_an_engine_that_is_killed_costs_no_sample_and_returns_with_the_newest_weights(pool, toy, caplog, capsys):
    """The first engine dies with requests in flight, then the other, so that the first must have the new weights."""
    alone = engines.make("transformers", toy, **OPTIONS)
    assert await tokens(pool, requests()) == await tokens(alone, requests())
    weights = changed(alone)
    await pool.load_weights(weights, 3)
    await alone.load_weights(weights)
    expected = await tokens(alone, requests(max_tokens=200))
    for victim, number in enumerate((signal.SIGKILL, signal.SIGABRT)):
        before = pool.status()[victim]
        running = asyncio.create_task(tokens(pool, requests(max_tokens=200)))
        await until(lambda victim=victim: pool.status()[victim].requests > 2)
        os.kill(before.pid, number)
        assert await running == expected
        await until(lambda: [status.state for status in pool.status()] == ["serving"] * 2)
        after = pool.status()[victim]
        assert after.restarts == before.restarts + 1
        assert after.pid != before.pid
        assert f"engine {victim} (process {before.pid} on {before.node}) is gone: " in caplog.text
    assert "SIGABRT" in caplog.text.rpartition("is gone: ")[2], "what it wrote last is in the log"
    assert capsys.readouterr().out == "", "the driver's output is its own"
    assert await tokens(pool, requests(max_tokens=200)) == expected
    assert {sample.version for sample in await asyncio.gather(*map(pool.sample, requests()))} == {3}


async def test_an_engine_that_is_started_again_has_the_adapters_of_before(ray_of_its_own, toy, tmp_path):
    adapters = {"past 1": write_adapter(toy, tmp_path / "adapter", 4, seed=1)}
    pool = EnginePool("transformers", toy, ProcessOptions(count=1, threads=1), adapters=1, adapter_rank=4, **OPTIONS)
    asked = [replace(request, adapter="past 1") for request in requests(4)]
    try:
        await pool.load_adapters(adapters)
        expected = await tokens(pool, asked)
        assert expected != await tokens(pool, requests(4))
        os.kill(pool.status()[0].pid, signal.SIGKILL)
        await until(lambda: pool.status()[0].restarts == 1)
        assert await tokens(pool, asked) == expected
    finally:
        await pool.close()


async def test_other_models_sample_in_the_processes_of_the_pool_also_in_one_that_starts_again(pool, toy, tmp_path):
    """Two other models, one of them with new weights and one with an adapter, beside the pool's own."""
    first, second = (write_random_llama(tmp_path / name, seed=seed) for name, seed in (("first", 7), ("second", 8)))
    adapters = {"past 1": write_adapter(first, tmp_path / "adapter", 4, seed=1)}
    with_adapters = {**OPTIONS, "adapters": 1, "adapter_rank": 4}
    plain, adapted = requests(6), [replace(request, adapter="past 1") for request in requests(6)]
    expected = []
    for model, options, asked in ((toy, OPTIONS, plain), (second, OPTIONS, plain), (first, with_adapters, adapted)):
        alone = engines.make("transformers", model, **options)
        if asked is adapted:
            await alone.load_adapters(adapters)
        expected.append(await tokens(alone, asked))
        await alone.close()
    assert len({str(each) for each in expected}) == 3
    other, lora = (pool.open_model("transformers", first, **each) for each in (OPTIONS, with_adapters))
    await other.load_weights(second)
    await lora.load_adapters(adapters)

    async def check():
        together = await asyncio.gather(tokens(pool, plain), tokens(other, plain), tokens(lora, adapted))
        assert together == expected

    await check()
    a, b = restarts(pool)
    os.kill(pool.status()[0].pid, signal.SIGKILL)
    await until(lambda: [(each.state, each.restarts) for each in pool.status()] == [("serving", a + 1), ("serving", b)])
    os.kill(pool.status()[1].pid, signal.SIGKILL)
    await check()
    with pytest.raises(EngineError, match="from a folder"):
        await other.load_weights([])
    with pytest.raises(BadInput, match="nothing-here"):
        pool.open_model("transformers", tmp_path / "nothing-here")
    await other.close()
    await other.close()
    await lora.close()
    assert await tokens(pool, plain) == expected[0]


async def test_a_model_that_one_engine_cannot_make_is_left_in_none():
    """The others have made it when one refuses."""
    slots = [Slot(number, "serving", SimpleNamespace()) for number in range(3)]
    models = {number: set() for number in range(3)}

    async def call(slot, process, method, key, *_):
        if method == "open_model" and slot.index == 1:
            raise BadInput("no such folder", "model")
        (models[slot.index].add if method == "open_model" else models[slot.index].discard)(key)

    loader = PoolLoader(slots, Affinity(3), LoadedModel("transformers", "m", {}), call, lambda: None)
    with pytest.raises(BadInput, match="no such folder"):
        await loader.open_model("1", LoadedModel("transformers", "other", {}))
    assert models == {0: set(), 1: set(), 2: set()}
    assert [slot.state for slot in slots] == ["serving"] * 3


class Loads:
    """Engines without a process: `weights` has what each has loaded, which waits at a method until it is `open`."""

    def __init__(self, closed):
        self.closed, self.open = closed, asyncio.Event()
        self.slots = [Slot(number, "serving", SimpleNamespace()) for number in range(2)]
        self.weights: dict[int, list[str]] = {0: [], 1: []}
        self.failed: list[bool] = []  # of each end whether the load had failed
        model = LoadedModel("transformers", "m", {})
        self.loader = PoolLoader(self.slots, Affinity(2), model, self.call, lambda: None)

    async def call(self, slot, process, method, *arguments):
        if method == self.closed and slot.index == 1:
            await self.open.wait()
        self.weights[slot.index].append(method)
        if method == "end_weights":
            self.failed.append(arguments[0] is not None)

    async def load(self, *chunks):
        left = iter([*chunks, None])

        async def next_chunk():
            return next(left)

        await self.loader.load_weights(next_chunk, 1)


@pytest.mark.parametrize("closed", ["begin_weights", "take", "end_weights"])
async def test_a_load_that_is_cancelled_is_ended_in_all_engines_before_another_begins(closed):
    engines_of = Loads(closed)
    loading = asyncio.create_task(engines_of.load("a"))
    await asyncio.sleep(0.05)
    loading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loading
    another = asyncio.create_task(engines_of.load("b"))
    await asyncio.sleep(0.05)
    engines_of.open.set()
    await asyncio.wait_for(another, 5.0)
    assert engines_of.failed == [closed != "end_weights"] * 2 + [False] * 2
    for loaded in engines_of.weights.values():
        assert loaded.count("end_weights") == 2
        assert loaded[-3:] == ["begin_weights", "take", "end_weights"]
    assert [slot.state for slot in engines_of.slots] == ["serving"] * 2
    assert not engines_of.loader.incomplete


async def test_a_cancelled_load_is_not_taken_for_complete_where_its_engines_are_gone():
    """An engine that starts later would get half of the weights, or the model's own under the new version."""
    engines_of = Loads("take")
    loading = asyncio.create_task(engines_of.load("a", "b"))
    await asyncio.sleep(0.05)

    async def gone(slot, *_):
        raise Gone(f"{slot} died")

    engines_of.loader._call = gone
    loading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loading
    await until(lambda: not engines_of.loader._lock.locked())
    assert engines_of.loader.incomplete
    assert engines_of.loader._weights == []


async def test_incomplete_weights_stay_so_while_an_engine_starts_again():
    engines_of = Loads("open_model")

    async def lost():
        raise ProcessLost("a rank died")

    with pytest.raises(ProcessLost):
        await engines_of.loader.load_weights(lost, 1)
    engines_of.loader._models["other"] = LoadedModel("transformers", "m", {})
    restoring = asyncio.create_task(engines_of.loader.restore(engines_of.slots[1], 5.0))
    await asyncio.sleep(0.05)
    assert engines_of.loader.incomplete, "the other engine serves meanwhile, with half of the weights"
    engines_of.open.set()
    await restoring
    await engines_of.load("a")
    assert not engines_of.loader.incomplete


async def test_an_engine_that_dies_while_others_load_does_not_serve():
    """It has nothing to load itself, and so hears of its end from no call."""
    engines_of = Loads("open_model")
    slot = Slot(2, "starting", SimpleNamespace())
    opening = asyncio.create_task(engines_of.loader.open_model("1", LoadedModel("transformers", "m", {})))
    await asyncio.sleep(0.05)
    restoring = asyncio.create_task(engines_of.loader.restore(slot, 5.0))
    await asyncio.sleep(0.05)
    slot.process = None
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    with pytest.raises(Gone):
        await restoring
    assert slot.state == "starting"


async def test_what_follows_a_load_that_is_cancelled_when_it_has_just_begun_does_not_wait_for_it(ray_of_its_own, toy):
    """The pool's thread has begun it, and this one has not heard of that."""
    pool = pool_of(toy, count=1)
    try:
        weights = changed(engines.make("transformers", toy, **OPTIONS))
        loading = asyncio.create_task(pool.load_weights(weights, 1))
        await asyncio.sleep(0)
        time.sleep(1.0)  # noqa: ASYNC251 (this loop is to hear of nothing)
        loading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await loading
        for following in (pool.load_weights(weights, 2), pool.sample(requests()[0])):
            with pytest.raises(EngineError, match="the weights are incomplete"):
                await asyncio.wait_for(following, 60.0)
        assert [status.state for status in pool.status()] == ["serving"]
    finally:
        await pool.close()


async def test_turns_are_embedded_as_in_one_process_also_in_one_that_starts_again(pool, toy):
    texts, pooling = ["ab ba", "a", "bb aab"], Pooling(layer=1, how="mean", context="previous")
    expected = Embedder(str(toy)).embed(texts, [pooling], ["one"] * 3)[pooling]
    assert np.ptp(expected, axis=0).max() > 0.01

    async def check():
        for embedded in await asyncio.gather(*(pool.embed(str(toy), texts, pooling, ["one"] * 3) for _ in range(6))):
            np.testing.assert_allclose(embedded, expected, atol=1e-6)

    await check()
    with pytest.raises(BadInput, match=f"on node {os.uname().nodename}"):
        await pool.embed("no-such-model", texts, pooling)
    os.kill(pool.status()[0].pid, signal.SIGKILL)
    await check()
    await until(lambda: [status.state for status in pool.status()] == ["serving"] * 2)
    await check()


async def test_an_engine_that_hangs_is_named_ended_and_started_again(ray_of_its_own, toy):
    """A stopped process has requests and makes no progress; those of the other engine are answered."""
    pool = pool_of(toy, silence_s=3.0)
    try:
        expected = await tokens(pool, requests())
        [first, _] = pool.status()
        os.kill(first.pid, signal.SIGSTOP)
        answers = await asyncio.gather(*(pool.sample(request) for request in requests()), return_exceptions=True)
        errors = {str(answer) for answer in answers if isinstance(answer, EngineError)}
        assert len(errors) == 1
        assert errors.pop().startswith(f"engine 0 (process {first.pid} on {first.node}) has not answered for ")
        answered = [at for at, answer in enumerate(answers) if not isinstance(answer, EngineError)]
        assert 3 <= len(answered) < 12
        assert [answers[at].tokens for at in answered] == [expected[at] for at in answered]
        await until(lambda: pool.status()[0].state == "serving")
        assert await tokens(pool, requests()) == expected
        assert not psutil.pid_exists(first.pid)
    finally:
        await pool.close()


async def test_the_status_of_its_engines(pool, toy):
    await until(lambda: all(status.doing == "waiting for requests" for status in pool.status()))
    first, second = pool.status()
    assert (first.name, second.name) == ("engine 0", "engine 1")
    assert {first.node, second.node} == {os.uname().nodename}
    for status in (first, second):
        assert "ray::EngineActor" in " ".join(psutil.Process(status.pid).cmdline())
        assert (status.state, status.requests) == ("serving", 0)
        assert (status.device, status.waiting_s, status.gpu_bytes) == ("cpu", 0.0, 0)
        assert status.silent_s < 5
        assert 50e6 < status.rss_bytes < 5e9
    running = asyncio.create_task(tokens(pool, requests(12, 200)))
    await until(lambda: sum(status.requests for status in pool.status()) == 12)
    await until(lambda: [status.doing for status in pool.status()] == ["sampling"] * 2)
    await running
    assert not any(status.requests for status in pool.status())


async def test_after_weights_that_end_too_early_nothing_is_sampled(ray_of_its_own, toy):
    alone, pool = engines.make("transformers", toy, **OPTIONS), pool_of(toy, count=1)
    try:

        def broken():
            yield changed(alone)[0]
            raise RuntimeError("out of weights")

        with pytest.raises(RuntimeError, match="out of weights"):
            await pool.load_weights(broken())
        with pytest.raises(EngineError, match="the weights are incomplete"):
            await pool.sample(requests()[0])
    finally:
        await pool.close()


async def test_weights_larger_than_a_chunk_arrive_whole(pool, toy, monkeypatch):
    alone = engines.make("transformers", toy, **OPTIONS)
    weights = changed(alone)
    monkeypatch.setattr("training.engines.chunks.cut.__defaults__", (10_001,))
    assert max(tensor.nbytes for _, tensor in weights) > 3 * 10_001
    await pool.load_weights(weights)
    await alone.load_weights(weights)
    assert await tokens(pool, requests()) == await tokens(alone, requests())


def test_it_serves_one_event_loop_after_another_and_refuses_what_cannot_be_made(ray_of_its_own, toy, tmp_path):
    with pytest.raises(BadInput, match=rf"nothing-here.* \(on node {os.uname().nodename}\)"):
        EnginePool("transformers", tmp_path / "nothing-here", ProcessOptions(count=2))
    with pytest.raises(EngineError, match=r"engine 0 did not start within 1 s; each needs 8 GPU, and 0 are free"):
        EnginePool("transformers", toy, ProcessOptions(bundles=Bundles(gpus=8), start_s=1.0))
    pool = pool_of(toy, count=1)
    other = pool.open_model("transformers", toy, **OPTIONS)
    first = asyncio.run(tokens(pool, requests()))
    assert asyncio.run(tokens(pool, requests())) == first
    asyncio.run(pool.close())
    asyncio.run(other.close())
    with pytest.raises(EngineError, match="closed"):
        asyncio.run(pool.sample(requests()[0]))
    with pytest.raises(EngineError, match="closed"):
        pool.open_model("transformers", toy)


async def test_the_last_engine_that_cannot_be_started_again_is_named(ray_of_its_own, tmp_path):
    folder = write_random_llama(tmp_path / "model")
    pool = EnginePool("transformers", folder, ProcessOptions(count=1), **OPTIONS)
    # for the second start alone, which fails
    pool._supervisor.options = replace(pool._supervisor.options, start_s=12.0)
    try:
        (folder / "config.json").unlink()
        os.kill(pool.status()[0].pid, signal.SIGKILL)
        with pytest.raises(ProcessLost, match=r"engine 0, the last one, could not be started again within 12 s: "):
            await pool.sample(requests()[0])
        assert pool.status()[0].state == "lost"
    finally:
        await pool.close()


def owned(values):
    """Put values into Ray's store from an actor, with which they are gone; return it and the references."""
    import ray

    class Owner:
        def put(self, values):
            return [ray.put(value) for value in values]

    owner = ray.remote(num_cpus=0)(Owner).remote()
    return owner, ray.get(owner.put.remote(list(values)))


async def test_weights_that_are_gone_end_the_pool_at_once(ray_of_its_own, toy, caplog):
    """An engine that starts again can never have them, however often that is tried."""
    import ray

    owner, chunks = owned(cut(changed(engines.make("transformers", toy, **OPTIONS))))

    async def each():
        for chunk in chunks:
            yield chunk

    pool = pool_of(toy)
    try:
        await pool.load_chunks(each(), 1)
        ray.kill(owner)
        os.kill(pool.status()[0].pid, signal.SIGKILL)
        await until(lambda: all(status.state == "lost" for status in pool.status()))
        for call in (pool.sample(requests()[0]), pool.load_chunks(each(), 2), pool.load_adapters({})):
            with pytest.raises(ProcessLost, match=r"what engine 0 .* was to load is gone, probably with the node"):
                await call
        with pytest.raises(ProcessLost):
            pool.open_model("transformers", toy)
        await pool.close_model("1")
        assert "does not start again" not in caplog.text
    finally:
        await pool.close()


async def test_weights_that_are_gone_while_they_are_loaded_end_what_waits_for_them(ray_of_its_own, toy):
    import ray

    pool = pool_of(toy, count=1)
    waits = asyncio.Event()
    owner, [gone] = owned(["a chunk"])
    ray.kill(owner)

    async def chunks():
        waits.set()
        await asyncio.sleep(1.0)
        yield gone

    try:
        loading = asyncio.create_task(pool.load_chunks(chunks(), 1))
        await waits.wait()
        calls = [loading, *(asyncio.create_task(pool.sample(request)) for request in requests(3))]
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(result) for result in results] == [ProcessLost] * 4, results
    finally:
        await pool.close()


async def test_an_answer_that_is_lost_with_its_engine_is_asked_of_another(pool, toy, monkeypatch):
    """Large answers stay on their node until they are fetched. Lost weights have the same error, but a task's."""
    import ray

    alone = engines.make("transformers", toy, **OPTIONS)
    answer, lost, before = pool._answer, [], sum(restarts(pool))

    async def losing(reference):
        result = await answer(reference)
        if not lost:
            lost.append(reference)
            raise ray.exceptions.ObjectReconstructionFailedError(reference.hex())
        return result

    monkeypatch.setattr(pool, "_answer", losing)
    assert await tokens(pool, requests(1)) == await tokens(alone, requests(1))
    assert lost
    await until(lambda: [status.state for status in pool.status()] == ["serving"] * 2)
    assert sum(restarts(pool)) == before + 1


@pytest.mark.vllm
async def test_a_split_engine_samples_as_a_whole_one_and_ends_with_its_process_and_with_any_of_its_workers(
    ray_of_its_own, toy
):
    """It is started again with the newest weights, and what was asked is answered; the status counts the workers."""
    pytest.importorskip("vllm", reason="vLLM is not installed: neither its CPU nor its GPU build")
    pool = EnginePool("vllm", toy, ProcessOptions(count=1, threads=1), tensor_parallel=2, **OPTIONS)
    try:
        alone = engines.make("vllm", toy, **OPTIONS)
        weights = changed(engines.make("transformers", toy, **OPTIONS))
        for engine in (alone, pool):
            await engine.load_weights(weights)
        expected = [await alone.sample(request) for request in requests()]
        await alone.close()
        together = await asyncio.gather(*map(pool.sample, requests()))
        assert [sample.tokens for sample in together] == [sample.tokens for sample in expected]
        for sample, other in zip(together, expected, strict=True):
            assert sample.logprobs == pytest.approx(other.logprobs, abs=1e-4)  # rounding differs with the batch
        [before] = pool.status()
        workers = workers_of(before.pid)
        total = sum(each.memory_info().rss for each in (psutil.Process(before.pid), *workers))
        await until(lambda: pool.status()[0].rss_bytes > 0.9 * total)
        running = asyncio.create_task(tokens(pool, requests()))
        await until(lambda: pool.status()[0].requests > 2)
        workers[1].kill()
        assert await running == [sample.tokens for sample in expected]
        [after] = pool.status()
        assert (after.pid != before.pid, after.restarts) == (True, 1)
        assert not any(each.is_running() for each in workers)
        workers = workers_of(after.pid)
        os.kill(after.pid, signal.SIGKILL)
        _, alive = await asyncio.to_thread(psutil.wait_procs, workers, 15)
        assert not alive
        assert await tokens(pool, requests()) == [sample.tokens for sample in expected]
        [after] = pool.status()
        assert after.restarts == 2
        assert sockets_of(after.pid)
    finally:
        await pool.close()
    await until(lambda: not psutil.pid_exists(after.pid))
    processes.delete_leftovers()
    assert not sockets_of(after.pid)


def workers_of(pid):
    workers = [each for each in psutil.Process(pid).children() if each.memory_info().rss > 10**8]
    assert len(workers) == 2, "others track what they share"
    return workers
