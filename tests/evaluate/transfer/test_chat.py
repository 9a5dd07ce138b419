"""AutoGen itself, in its own environment, over HTTP: who hears what, what ends a chat, and failures as data."""

import asyncio
import json
import subprocess

import pytest

from tests.evaluate.transfer.stubs import needed
from tests.stub import Raw, Redirect, Status, Stub, completion
from training.engines.base import Sampling
from training.errors import BadInput
from training.evaluate.transfer import chat, endpoint
from training.evaluate.transfer.questions import Question
from training.evaluate.transfer.transcript import score, seeds

QUESTION = Question(id="q", question="What is 40 + 32?", answer="#### 72")
pytestmark = pytest.mark.process


def hold(stub, monkeypatch, folder, *questions, key="", top_k=20):
    """The transcripts of chats about the questions, by id."""
    monkeypatch.setenv("MODEL_ADDRESSES", f"{stub.url}=STUB_API_KEY" if key else stub.url)
    monkeypatch.setenv("STUB_API_KEY", key)
    source = f"{stub.url} stub STUB_API_KEY" if key else f"{stub.url} stub"

    async def all_of(served):
        chats = chat.hold(questions or (QUESTION,), served, seed=7, lanes=4, log=folder / "log")
        return {transcript.question: transcript async for transcript in chats}

    with endpoint.opened(source, Sampling(max_tokens=64, top_k=top_k), folder, engine="auto", lanes=4) as served:
        return asyncio.run(all_of(served))


@needed
def test_the_assistant_ends_a_chat(tmp_path, monkeypatch):
    with Stub("It is \\boxed{72}. TERMINATE") as stub:
        transcript = hold(stub, monkeypatch, tmp_path, key="abc")["q"]
        (asked,) = stub.requests
    assert (transcript.ended, transcript.error) == ("assistant", "")
    assert [(r.agent, r.prompt_tokens, r.completion_tokens) for r in transcript.replies] == [("assistant", 7, 4)]
    assert score(QUESTION, transcript).correct
    assert asked.headers["authorization"] == "Bearer abc"
    system, task = asked.messages
    assert (system["content"], task) == (chat.ASSISTANT, {"role": "user", "content": QUESTION.prompt()})
    sampling = {name: asked.body[name] for name in ("temperature", "top_p", "top_k", "max_tokens", "seed")}
    first, *_ = seeds(7, "chat", QUESTION, chat.CALLS)
    assert sampling == {"temperature": 1.0, "top_p": 1.0, "top_k": 20, "max_tokens": 64, "seed": first}


@needed
def test_the_user_proxy_ends_a_chat_and_the_assistants_last_word_counts(tmp_path, monkeypatch):
    with Stub() as stub:
        stub.script("<think>72? 70?</think>\\boxed{70}", "<think>unsure</think>Check it.", "\\boxed{72}", "TERMINATE")
        transcript = hold(stub, monkeypatch, tmp_path)["q"]
        heard = [asked.messages for asked in stub.requests]
    assert transcript.ended == "user_proxy"
    assert [reply.agent for reply in transcript.replies] == ["assistant", "user_proxy"] * 2
    assert transcript.replies[0].text == "<think>72? 70?</think>\\boxed{70}"
    assert score(QUESTION, transcript).answer == "72"
    task = QUESTION.prompt()
    assert heard[1] == [
        {"role": "system", "content": chat.USER_PROXY},
        {"role": "assistant", "content": task},
        {"role": "user", "content": "\\boxed{70}"},
    ]
    assert [(message["role"], message["content"]) for message in heard[2][1:]] == [
        ("user", task),
        ("assistant", "\\boxed{70}"),
        ("user", "Check it."),
    ]


@needed
def test_a_chat_without_end_stops_after_the_assistants_third_reply(tmp_path, monkeypatch):
    with Stub("Perhaps \\boxed{72}.") as stub:
        transcript = hold(stub, monkeypatch, tmp_path)["q"]
        sent = [asked.body["seed"] for asked in stub.requests]
    assert transcript.ended == "limit"
    assert [reply.agent for reply in transcript.replies] == ["assistant", "user_proxy"] * 2 + ["assistant"]
    assert sent == seeds(7, "chat", QUESTION, 5)


@needed
def test_a_failed_call_is_the_error_of_its_chat_alone(tmp_path, monkeypatch):
    other = Question(id="r", question="What is 6 times 7?", answer="#### 42")

    def reply(body):
        prompt = str(body["messages"])
        if "40 + 32" not in prompt:
            return "\\boxed{42} TERMINATE"
        return "Perhaps 70." if len(body["messages"]) == 2 else Status(400, "no room, says the key abc")

    with Stub(reply) as stub:
        transcripts = hold(stub, monkeypatch, tmp_path, QUESTION, other, key="abc")
    failed = transcripts["q"]
    assert "400" in failed.error
    assert "abc" not in failed.error + (tmp_path / "log").read_text()
    assert (failed.ended, failed.final) == ("", "")
    assert [reply.text for reply in failed.replies] == ["Perhaps 70."]
    assert score(QUESTION, failed).correct is None
    assert score(other, transcripts["r"]).correct


@needed
def test_top_k_is_left_out_where_it_is_zero(tmp_path, monkeypatch):
    """As in the other forms: not every server knows the parameter."""
    with Stub("TERMINATE") as stub:
        hold(stub, monkeypatch, tmp_path, top_k=0)
        (asked,) = stub.requests
    assert "top_k" not in asked.body


@needed
def test_a_redirect_is_an_error_and_not_followed(tmp_path, monkeypatch):
    """Only the address that was given is checked, so the prompt goes nowhere else."""
    with Stub("\\boxed{72} TERMINATE") as elsewhere, Stub(Redirect(f"{elsewhere.url}/chat/completions")) as stub:
        transcript = hold(stub, monkeypatch, tmp_path)["q"]
        assert elsewhere.requests == []
    assert "307" in transcript.error
    assert transcript.replies == ()


@needed
def test_an_answer_that_is_no_completion_is_an_error(tmp_path, monkeypatch):
    empty = json.loads(completion("x"))
    with Stub(Raw(json.dumps({**empty, "choices": []}))) as stub:
        transcript = hold(stub, monkeypatch, tmp_path)["q"]
    assert transcript.error
    assert transcript.replies == ()


def test_a_script_that_dies_leaves_errors(tmp_path, monkeypatch):
    script = tmp_path / "script.py"
    script.write_text("import sys; sys.exit(3)")
    monkeypatch.setattr(chat, "SCRIPT", script)
    monkeypatch.setattr(chat, "python", lambda: "python3")
    with Stub() as stub:
        transcript = hold(stub, monkeypatch, tmp_path)["q"]
    assert transcript.error == "AutoGen's script ended with code 3"


def test_a_chat_in_which_the_assistant_was_not_asked_is_an_error_and_not_a_wrong_answer():
    """Such as where the question itself says TERMINATE: the user proxy puts it."""
    record = chat._Chat(id="q", replies=(), ended="user_proxy", error="")
    transcript = chat._transcript(record)
    assert (transcript.ended, transcript.error) == ("", "the assistant was not asked")
    assert score(QUESTION, transcript).correct is None


def test_a_missing_environment_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(chat, "ENVIRONMENT", tmp_path)
    with pytest.raises(BadInput, match="make autogen") as error:
        chat.python()
    assert error.value.where == "--form"


@needed
def test_what_other_agents_read_is_what_the_other_forms_pass_on():
    """The script's own rule agrees with `split_private` on replies as models write them."""
    from training.text.parsing import split_private

    replies = ["<think>a</think> b", "a</think>b", "<think>a", "plain", "<think>a</think>b<think>c", ""]
    replies += ["<thinking>a</thinking>b", "<Think>a</THINK>b", "< think >a< / think >b", "<think>a<think>b</think>c"]
    replies += ["<think>a</think>b <think>c</think>d", "a</think>b</think>c", "<thinks>a</thinks>b", "<think\n>a"]
    code = f"import json, autogen_chat; print(json.dumps([autogen_chat.public(text) for text in {replies!r}]))"
    done = subprocess.run(
        [str(chat.python()), "-c", code], capture_output=True, text=True, check=True, cwd=chat.SCRIPT.parent
    )
    assert json.loads(done.stdout) == [split_private(reply)[0].strip() for reply in replies]


@needed
def test_the_user_proxy_hears_all_that_is_public(tmp_path, monkeypatch):
    with Stub("ok") as stub:
        stub.script("<Think>a</think>The answer is 72 <think>b</think>so far.", "<thinking>c</thinking>TERMINATE")
        hold(stub, monkeypatch, tmp_path)
        heard = stub.requests[1].messages[-1]["content"]
    assert heard == "The answer is 72  so far."


@needed
def test_the_versions_are_those_of_its_own_environment():
    assert set(chat.versions()) == set(chat.PACKAGES)
    assert chat.versions()["autogen-agentchat"].startswith("0.7.")
