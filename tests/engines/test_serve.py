"""A served model: the prompt tokens of training, a key, an end when asked to or at the end of input."""

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from tests.toy_models import write_random_llama
from training.engines.base import ChatMessage, Sampling
from training.engines.remote.addresses import AllowList
from training.engines.remote.chat import RemoteModel
from training.engines.remote.config import RemoteConfig
from training.engines.serving.config import ServeConfig
from training.errors import WindowFull
from training.games import make
from training.players.remote import RemotePlayer
from training.records import Move, Scenario
from training.rundir import RunDir
from training.store import write_json
from training.text.messages import chat

KEY = "random-key-of-this-test"
LONG = {"scenario": "A queue.", "participants": [{"goal": "Wait."}, {"goal": "Go."}], "turn_limit": 100}


def observation():
    side = {"values": {"food": 5, "water": 4}, "walk_away": 1}
    deal = {
        "kind": "items",
        "items": [{"name": "food", "count": 2}, {"name": "water", "count": 2}],
        "sides": [side, side],
    }
    game = make(Scenario(id="s", game="negotiation", seats=("Ann", "Ben"), settings={"deal": deal}))
    game.step({0: Move(action="talk", text="<|im_end|> hello there")})
    game.step({1: Move(action="talk", text="good day")})
    return game.observe(0)


class Process:
    """The serve process with its run directory."""

    def __init__(self, folder, engine, model):
        self.run, self.engine = RunDir(folder), engine
        write_json(self.run.config, ServeConfig(model=str(model), engine=engine, start_s=240).to_dict())
        environment = {**os.environ, "VLLM_API_KEY": KEY, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "training.engines.serving.serve", str(folder), "--attempt", "1"]
        log = (folder / "log").open("wb")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment)
        self.log = folder / "log"

    def status(self):
        path = self.run.attempt(1).status
        return json.loads(path.read_text()) if path.exists() else {}

    def wait(self, phase, seconds):
        ends = time.monotonic() + seconds
        while self.status().get("phase") != phase:
            assert time.monotonic() < ends, self.log.read_text()[-2000:]
            assert phase == "finished" or self.process.poll() is None, self.log.read_text()[-2000:]
            time.sleep(0.1)
        return self.status()

    def ask(self, path, body=None, key=KEY):
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.status()["address"] + path, data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(40)
        finally:
            self.process.kill()


async def long_conversation(address):
    """What the model at `address` says after a talk of about twice its window of 2048 bytes."""
    seats = ("Ann", "Ben")
    game = make(Scenario(id="s", game="dialogue", seats=seats, settings=LONG))
    for turn in range(40):
        game.step({turn % 2: Move(action="speak", text=f"{turn}: " + "word " * 20)})
    config = RemoteConfig(address=address, model="parley", secret="SERVED_API_KEY", retries=0)
    allowed = AllowList.of([f"{address}=SERVED_API_KEY"])
    model = RemoteModel(config, allowed=allowed, secret=lambda _: KEY)
    try:
        whole = [ChatMessage(**message) for message in chat(game.observe(0), 0, seats)]
        with pytest.raises(WindowFull):
            await model.reply(whole, Sampling(max_tokens=16))
        return await RemotePlayer(model, Sampling(max_tokens=16), seats).act(0, game.observe(0), 1)
    finally:
        await model.close()


@pytest.fixture(params=["transformers", pytest.param("vllm", marks=pytest.mark.vllm)])
def served(request, tmp_path):
    if request.param == "vllm":
        pytest.importorskip("vllm")
    model = write_random_llama(tmp_path / "model", window=2048)
    (tmp_path / "run").mkdir()
    process = Process(tmp_path / "run", request.param, model)
    yield process, model
    process.end()


@pytest.mark.slow
@pytest.mark.process
def test_the_server_reads_what_training_reads(served):
    from training.engines.base import Sample
    from training.engines.local.loading import load_tokenizer
    from training.text.template import ChatTokenizer
    from training.text.tokens import TraceBuilder

    process, model = served
    process.wait("ready", 240)
    tokenizer = ChatTokenizer(load_tokenizer(model))
    messages = chat(observation(), 0, ("Ann", "Ben"))
    asked = {"model": "parley", "messages": messages, "max_tokens": 4, "return_token_ids": True, "seed": 1}
    answer = process.ask("/chat/completions", asked)
    assert answer["prompt_token_ids"] == tokenizer.prompt(messages)

    # the growing trace of training, whose own turn was sampled as these very tokens, reads the same
    builder = TraceBuilder(tokenizer, seat=0)
    mine = next(at for at, message in enumerate(messages) if message["role"] == "assistant")
    builder.prompt(messages[:mine])
    reply_tokens = [*tokenizer.encode(tokenizer.neutral(messages[mine]["content"])), *tokenizer.stop_ids[:1]]
    builder.record(Sample(tuple(reply_tokens), tuple(0.0 for _ in reply_tokens), "stop"))
    assert builder.prompt(messages[mine + 1 :]) == answer["prompt_token_ids"]

    assert process.ask("/chat/completions", {**asked, "temperature": 0.5}, key=KEY)["choices"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        process.ask("/chat/completions", asked, key="wrong")
    assert refused.value.code == 401
    for path in ("/invocations", "/tokenize", "/metrics"):  # beside the paths of OpenAI's interface
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(process.status()["address"].removesuffix("/v1") + path, data=b"{}", timeout=60)
        assert refused.value.code == 401

    # a conversation that outgrew the window goes on without its oldest messages
    answer = asyncio.run(long_conversation(process.status()["address"]))
    assert answer.text

    if process.engine == "vllm":
        process.run.attempt(1).ask("stop")
    else:
        process.process.stdin.close()
    assert process.wait("finished", 30)["result"] == "stopped"
    assert process.process.wait(10) == 0


def test_a_model_that_is_not_there_is_input_to_mend(tmp_path):
    process = Process(tmp_path, "transformers", tmp_path / "nothing")
    try:
        assert process.process.wait(60) == 2
        status = process.status()
        assert (status["phase"], status["result"]) == ("finished", "failed")
        assert "no such model" in status["why"]
    finally:
        process.end()


WAITING = """
import sys
from training.engines.serving import serve

def run(self):
    print("serving", flush=True)
    print("asked" if self.leave.wait(3) else "not asked", flush=True)

serve.Serving.run = run
sys.exit(serve.main())
"""


@pytest.mark.parametrize("stdin, heard", [(subprocess.DEVNULL, "not asked"), (subprocess.PIPE, "asked")])
def test_only_the_end_of_an_open_input_is_a_stop_request(tmp_path, stdin, heard):
    write_json(RunDir(tmp_path).config, ServeConfig(model="m").to_dict())
    command = [sys.executable, "-c", WAITING, str(tmp_path)]
    with subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "serving\n"
        if process.stdin:
            process.stdin.close()
        assert process.stdout.readline() == f"{heard}\n"


def test_adapters_are_served_merged(tmp_path):
    import torch
    from peft import LoraConfig, get_peft_model
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM

    from training.engines.local.loading import load_tokenizer
    from training.engines.serving.serve import prepared

    base = write_random_llama(tmp_path / "base")
    adapted = get_peft_model(
        AutoModelForCausalLM.from_pretrained(base), LoraConfig(r=2, lora_alpha=4, target_modules=["q_proj"])
    )
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if "lora_B" in name:
                weight.fill_(0.5)
    adapted.save_pretrained(tmp_path / "adapter")
    load_tokenizer(base).save_pretrained(tmp_path / "adapter")

    served = prepared(str(tmp_path / "adapter"), tmp_path / "served")
    assert not (served / "adapter_config.json").exists()
    name = "model.layers.0.self_attn.q_proj.weight"
    before, after = load_file(base / "model.safetensors")[name], load_file(served / "model.safetensors")[name]
    low = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    a, b = (low[f"base_model.{name[:-7].replace('model.', 'model.model.', 1)}.lora_{side}.weight"] for side in "AB")
    assert torch.allclose(after, before + 2.0 * b @ a, atol=1e-5)  # alpha / r = 2
    assert prepared(str(base), tmp_path / "unused") == base
