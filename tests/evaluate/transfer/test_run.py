"""The command over a scripted endpoint: right answers score 1 in every form, wrong ones 0, others are unparsed."""

import json
from contextlib import nullcontext

import pytest

from tests.evaluate.transfer.stubs import GOLD, WRONG, agent, needed, write_questions
from tests.stub import Raw, Status, Stub
from tests.toy_models import write_random_llama
from training.cli import main
from training.engines.base import Sampling
from training.evaluate.transfer import chat, endpoint, questions, run

FORMS = ["single", "debate", pytest.param("chat", marks=[needed, pytest.mark.process])]


def command(monkeypatch, folder, stub, form, *arguments):
    monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
    path = write_questions(folder)
    words = ["questions", str(path), "--model", f"{stub.url} stub", "--form", form, "--dir", str(folder / "out")]
    return main([*words, "--json", *arguments])


def lines(folder):
    return [json.loads(line) for line in (folder / "out" / "transcripts.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "answers, text, correct, unparsed",
    [
        (GOLD, "<think>Well.</think> \\boxed{%s} TERMINATE", 3, 0),
        (WRONG, "I think. \\boxed{%s} TERMINATE", 0, 0),
        (dict.fromkeys(GOLD, "nothing"), "I know %s. TERMINATE", 0, 3),
    ],
    ids=["right", "wrong", "unparsed"],
)
def test_a_scripted_endpoint_scores_what_it_says(tmp_path, monkeypatch, capsys, form, answers, text, correct, unparsed):
    with Stub(agent(answers, text)) as stub:
        assert command(monkeypatch, tmp_path, stub, form) == 0
    result = json.loads(capsys.readouterr().out)
    numbers = result["forms"][form]
    assert (numbers["correct"], numbers["unparsed"], numbers["errors"]) == (correct, unparsed, 0)
    assert numbers["accuracy"]["mean"] == correct / 3
    assert [line["gold"] for line in sorted(lines(tmp_path), key=lambda line: line["transcript"]["question"])] == [
        "72",
        "42",
        "B",
    ]
    # the stub counts 7 tokens for a prompt, and a word as a token
    replies = [reply for line in lines(tmp_path) for reply in line["transcript"]["replies"]]
    assert numbers["tokens"]["prompt"] == 7 * len(replies)
    assert numbers["tokens"]["completion"] == sum(len(reply["text"].split()) for reply in replies)
    written = json.loads((tmp_path / "out" / "result.json").read_text())
    assert written == {name: value for name, value in result.items() if name != "dir"}


def test_forms_stand_beside_the_first_with_their_difference(tmp_path, monkeypatch, capsys):
    with Stub(agent(GOLD)) as stub:
        assert command(monkeypatch, tmp_path, stub, "single,debate", "--limit", "2", "--seed", "5") == 0
    result = json.loads(capsys.readouterr().out)
    assert list(result["forms"]) == ["single", "debate"]
    assert result["differences"]["debate - single"]["mean"] == 0
    conditions = result["conditions"]
    sampling = "--temperature 0.6 --top-p 0.95 --top-k 20 --max-tokens 8192"
    assert conditions["command"] == (
        f"python -m training questions questions.jsonl --model '{stub.url} stub' "
        f"--form single,debate --limit 2 --seed 5 --engine auto {sampling}"
    )
    assert conditions["questions"]["asked"] == 2
    assert conditions["sampling"] == {
        "temperature": 0.6,
        "top_p": 0.95,
        "top_k": 20,
        "max_tokens": 8192,
        "stop": [],
        "constrain": False,
    }


@pytest.mark.parametrize("form", FORMS)
def test_a_failed_server_is_no_zero(tmp_path, monkeypatch, capsys, form):
    with Stub(Status(400)) as stub:
        assert command(monkeypatch, tmp_path, stub, form) == 1
    numbers = json.loads(capsys.readouterr().out)["forms"][form]
    assert (numbers["errors"], numbers["accuracy"], numbers["tokens"]) == (3, None, None)
    assert all("400" in line["transcript"]["error"] and line["correct"] is None for line in lines(tmp_path))


def test_one_failed_question_leaves_the_others(tmp_path, monkeypatch, capsys):
    right = agent(GOLD)

    def reply(body):
        return Status(400) if "40 + 32" in str(body["messages"]) else right(body)

    with Stub(reply) as stub:
        assert command(monkeypatch, tmp_path, stub, "single") == 0
    numbers = json.loads(capsys.readouterr().out)["forms"]["single"]
    assert (numbers["questions"], numbers["errors"], numbers["accuracy"]["mean"], numbers["accuracy"]["n"]) == (
        3,
        1,
        1.0,
        2,
    )


def test_the_text_says_what_was_found(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    with Stub(agent(GOLD)) as stub:
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        words = ["questions", str(write_questions(tmp_path)), "--model", f"{stub.url} stub"]
        assert main([*words, "--form", "single,debate", "--dir", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr()
    assert "single: accuracy 1.000 [0.292, 1.000] n = 3" in shown.out  # 0.025 ** (1 / 3) = 0.292
    assert "3 replies, 0 of them cut off; " in shown.out
    assert "debate - single: 0.000" in shown.out
    assert "debate: 3 of 3 questions" in shown.err


def test_where_the_server_reports_no_tokens_none_are_counted(tmp_path, monkeypatch, capsys):
    with Stub(Raw(json.dumps({"choices": [{"message": {"content": "\\boxed{72}"}}]}))) as stub:
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        words = ["questions", str(write_questions(tmp_path)), "--model", f"{stub.url} stub", "--limit", "1"]
        assert main([*words, "--form", "single", "--dir", str(tmp_path / "out")]) == 0
    assert "1 replies; the server did not report tokens" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, where",
    [
        (["--form", "single,talk"], "--form"),
        (["--form", "single,single"], "--form"),
        (["--form", "chat"], "--form"),
        (["--model", "http://127.0.0.1:1/v1 stub"], "http://127.0.0.1:1/v1"),
        (["--model", "no-such-model"], "model"),
        (["--top-p", "1.5"], "--top-p"),
        (["--temperature", "warm"], "--temperature"),
        (["--engine", "other"], "--engine"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(tmp_path, monkeypatch, capsys, arguments, where):
    monkeypatch.setattr(chat, "ENVIRONMENT", tmp_path / "none")
    with Stub(agent(GOLD)) as stub:
        assert command(monkeypatch, tmp_path, stub, "single", *arguments) == 2
        assert stub.requests == []
    assert json.loads(capsys.readouterr().out)["error"]["where"] == where
    assert not (tmp_path / "out").exists()


def test_a_folder_with_files_is_refused(tmp_path, monkeypatch, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    with Stub(agent(GOLD)) as stub:
        assert command(monkeypatch, tmp_path, stub, "single") == 2
    assert "not an empty directory" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path, capsys, monkeypatch):
    (tmp_path / "file").touch()
    with Stub(agent(GOLD)) as stub:
        assert command(monkeypatch, tmp_path, stub, "single", "--dir", str(tmp_path / "file" / "out")) == 2
        assert stub.requests == []
    assert "the folder cannot be made" in capsys.readouterr().err


def test_a_reply_longer_than_the_models_window_is_refused(tmp_path, capsys):
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"max_position_embeddings": 512}')
    (model / "model.safetensors").touch()
    words = ["questions", str(write_questions(tmp_path)), "--model", str(model), "--dir", str(tmp_path / "out")]
    assert main([*words, "--max-tokens", "512", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["where"] == "--max-tokens"
    assert "512" in error["why"]
    assert not (tmp_path / "out").exists()


def test_the_conditions_name_a_model_without_its_place_on_this_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(endpoint, "_served", lambda *_: nullcontext(("http://127.0.0.1:1/v1", "key")))
    model, path = write_random_llama(tmp_path / "llama"), write_questions(tmp_path)
    plan = run.Plan(
        path=path,
        model=str(model),
        forms=["single"],
        folder=tmp_path / "out",
        limit=1,
        seed=0,
        sampling=Sampling(),
        engine="auto",
        lanes=1,
    )
    with endpoint.opened(plan.model, plan.sampling, plan.folder / "server", engine="auto", lanes=1) as served:
        conditions = run._conditions(plan, questions.read(path, 1), served)
    assert conditions["model"]["source"] == "llama"
    assert "--model 'llama'" in conditions["command"]
    assert str(tmp_path) not in json.dumps(conditions)


@needed
@pytest.mark.slow
@pytest.mark.process
def test_a_model_of_ours_is_served_for_every_form(tmp_path, capsys):
    """A random model says nothing that can be parsed, and what does not fit its window is an error, not a zero."""
    model = write_random_llama(tmp_path / "model", window=1500)
    words = ["questions", str(write_questions(tmp_path)), "--model", str(model), "--dir", str(tmp_path / "out")]
    options = ["--form", "single,debate,chat", "--engine", "transformers", "--max-tokens", "8", "--limit", "2"]
    main([*words, *options, "--json"])
    result = json.loads(capsys.readouterr().out)
    single, debate, chatted = (result["forms"][form] for form in ("single", "debate", "chat"))
    assert (single["errors"], single["replies"], chatted["errors"], chatted["replies"]) == (0, 2, 0, 10)
    assert debate["errors"] == 2  # the moderator's second round is longer than 1500 bytes
    errors = [line["transcript"]["error"] for line in lines(tmp_path) if line["form"] == "debate"]
    assert all("maximum context length" in error for error in errors)
    assert result["conditions"]["model"]["engine"] == "transformers"
    assert set(result["conditions"]["versions"]) >= {"torch", "transformers", *chat.PACKAGES}
