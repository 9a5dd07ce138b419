"""What a learner rank does in the tests of several ranks: a process of its own, which writes its results to a file."""

import multiprocessing
import socket
from dataclasses import replace

import torch
import torch.multiprocessing
from torch.distributed.tensor import DTensor

from tests.learn.test_update import items
from tests.peaks import growth
from training.attempts.progress import Progress, StopRequested
from training.errors import BadInput, OutsideError
from training.learn import policy as policies
from training.learn.forward import measure
from training.learn.learner import Learner
from training.learn.models import merged_weights
from training.learn.ranks import join, whole
from training.learn.update import BadStep, Updater
from training.run_sections import LearnSection
from training.rundir import AttemptDir

STEPS = 3
BASIS = {
    "critic_warmup": 1,
    "critic_passes": 1,
    "vf_coef": 0.0,
    "kl": "k2",
    "kl_coef": 0.1,
    "ent_coef": 0.01,
    "lr": 1e-3,
    "tokens_per_batch": 64,
    "trajectories_per_update": 6,
}
HEADS = ("turn", "token")


def on_ranks(world, tmp_path, work, *arguments):
    """Let `work(group, *arguments)` run on `world` ranks; return what each returned, in order."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    files = [tmp_path / f"{work.__name__}-{world}-{rank}.pt" for rank in range(world)]
    multiprocessing.set_forkserver_preload([__name__])  # each process by itself takes four seconds to import it
    processes = (_rank, (world, port, files, work, arguments), world)
    torch.multiprocessing.start_processes(*processes, start_method="forkserver")
    return [torch.load(file, weights_only=False) for file in files]


def _rank(rank, world, port, files, work, arguments):
    torch.set_num_threads(1)
    group = join(rank, world, f"127.0.0.1:{port}", "cpu", timeout_s=60)
    torch.save(work(group, *arguments), files[rank])
    group.close()


def some(count=4):
    """Twelve traces of three lengths by default, with credit for every term and values of two heads."""
    made = [item for seed in range(count) for item in items(seed, HEADS)]
    for number, item in enumerate(made):
        item.trajectory = (number, 0)
    return made


def made(base, group, **settings):
    return policies.load(
        base, HEADS, LearnSection.from_dict(BASIS | settings), seed=1, temperature=0.8, device="cpu", group=group
    )


def learning(group, base, folder, cases):
    """Learn with each of the settings."""
    return [_learned(group, base, folder, settings) for settings in cases]


def _learned(group, base, folder, settings):
    """Measure and learn for some steps; return metrics by step, what was measured, and all weights at the end."""
    policy = made(base, group, **settings)
    updater = Updater(policy, 0)
    progress = Progress(AttemptDir(folder / f"rank-{group.rank}-of-{group.world}"), STEPS)
    metrics, read = [], []
    for step in range(1, STEPS + 1):
        work = some()
        values = measure(policy, work, old=True, reference=True)
        read.append([(i.old, i.reference, v) for i, v in zip(work, values, strict=True) if v is not None])
        if group.many:
            share(group, work, values)
        metrics.append(updater.run(updater.plan(work, step), step, progress))
    weights = {name: tensor.clone() for name, tensor in merged_weights(policy.model)}
    moments = {
        name: whole(entry).clone()
        for place, state in enumerate(updater.optimizer.state_dict()["state"].values())
        for name, entry in ((f"{place}.{key}", value) for key, value in state.items())
        if entry.dim()
    }
    critic = dict(policy.critic.state_dict())
    return {"metrics": metrics, "read": read, "weights": weights, "moments": moments, "critic": critic}


def share(group, work, values):
    """Give every rank what the others measured, as the driver does."""
    mine = [(n, i.old, i.reference) for n, (i, v) in enumerate(zip(work, values, strict=True)) if v is not None]
    parts = [None] * group.world
    torch.distributed.all_gather_object(parts, mine)
    for number, old, reference in (row for part in parts for row in part):
        work[number].old, work[number].reference = old, reference


def failing(group, base, folder, who, how):
    """Let one rank fail in a step; return what each raised, and whether its weights are as before."""
    policy = made(base, group, lora={"rank": 2}, kl="none", kl_measured=False, critic_warmup=0)
    updater = Updater(policy, 0)
    before = [whole(p.detach()).clone() for p in updater.weights]
    progress = Progress(AttemptDir(folder / f"failing-{how}-{group.rank}"), 1)
    work = some()
    if group.rank == who and how == "number":
        for item in work:
            item.credit = replace(item.credit, ppo=item.credit.ppo * float("nan"))
    if group.rank == who and how == "stop":
        progress.stop("asked")
    try:
        updater.run(updater.plan(work, 1), 1, progress)
        raised = ""
    except (BadStep, StopRequested) as error:
        raised = f"{type(error).__name__}: {error}"
    same = all(torch.equal(a, whole(p.detach())) for a, p in zip(before, updater.weights, strict=True))
    return raised, same


def loading(group, base, cases):
    """Load a policy with each of the settings; return its growth in memory at the most, and what it is afterwards."""
    return [_loaded(group, base, settings) for settings in cases]


def _loaded(group, base, settings):
    policies_made = []
    before, peak = growth(lambda: policies_made.append(made(base, group, critic_warmup=0, **settings)))
    parameters = policies_made[0].inner.parameters()
    return peak - before, sum(p.to_local().nbytes for p in parameters if isinstance(p, DTensor))


def absent(group, base, elsewhere, settings):
    """Load a policy of which only the last rank has the files; return all weights, and the reference's."""
    folder = base if group.rank == group.world - 1 else elsewhere
    policy = made(folder, group, **settings)
    with policy.as_reference() as reference:
        former = {name: whole(p.detach()).clone() for name, p in reference.named_parameters()}
    return {name: tensor.clone() for name, tensor in merged_weights(policy.model)}, former


def telling(group):
    """Return what each rank tells the others in each way, and what one rank's error is on all."""
    heard = [group.gather({"rank": group.rank, "text": "ü" * group.rank, "numbers": [0.1, float("inf")]})]
    heard += [group.broadcast(f"from {group.rank}".encode(), 1), group.broadcast(b"", 0)]
    heard.append(group.totals({"sum": 1.5, "largest": float(group.rank)}, largest=("largest",)))
    for error in (BadInput("write it", "learn.lr"), BadStep("it is not finite"), OutsideError("it is away")):
        try:
            with group.together():
                if group.rank == 1:
                    raise error
        except (BadInput, BadStep, OutsideError) as raised:
            heard.append((type(raised).__name__, str(raised), getattr(raised, "where", "")))
    return heard


def resuming(group, base, state, elsewhere, settings):
    """Take a state whose file only the last rank has; return the optimizer's state, whole, and the policy's tensors."""
    learner = Learner(made(base, group, **settings), 0)
    if group.rank < group.world - 1:
        state.tensors.path = elsewhere
    learner.take(state)
    return {name: tensor.clone() for name, tensor in learner.tensors()}


def taking(group, base, state):
    """Take a state; return the growth in memory at the most, and the bytes of this rank's part of the optimizer's."""
    learner = Learner(made(base, group, lora=None, kl="none", kl_measured=False, critic_warmup=0), 0)
    before, peak = growth(lambda: learner.take(state))
    tensors = learner.optimizers()[1].values()
    return peak - before, sum(t.to_local().nbytes for t in tensors if isinstance(t, DTensor))


def going_back(group, base, folder, elsewhere):
    """Go back to a checkpoint, then to one that only the first rank has; return beats, tensors and the error."""
    beats = []
    settings = {"lora": None, "kl": "none", "kl_measured": False, "critic_warmup": 0}
    learner = Learner(made(base, group, **settings), 0, lambda: beats.append(1))
    learner.go_back(folder)
    counted = len(beats)
    try:
        learner.go_back(elsewhere if group.rank else folder)
    except BadInput as error:
        return counted, len(learner.optimizers()[1]), str(error)
    return counted, len(learner.optimizers()[1]), ""
