"""An endpoint that answers questions in every form as a test wants, and the questions that it knows."""

import json

import pytest

from training.evaluate.transfer import chat

needed = pytest.mark.skipif(
    not (chat.ENVIRONMENT / "bin" / "python").exists(),
    reason="no .venv-autogen: `make autogen` or `make test` builds it",
)

QUESTIONS = (
    {"question": "What is 40 + 32?", "answer": "40 + 32 = 72\n#### 72"},
    {"question": "What is 6 times 7?", "answer": "6 * 7 = 42\n#### 42"},
    {"question": "Which is blue?", "choices": ["grass", "the sky"], "answer": "B"},
)
GOLD = {"What is 40 + 32?": "72", "What is 6 times 7?": "42", "Which is blue?": "B"}
WRONG = {"What is 40 + 32?": "73", "What is 6 times 7?": "-42", "Which is blue?": "A"}


def write_questions(folder):
    path = folder / "questions.jsonl"
    path.write_text("".join(json.dumps(question) + "\n" for question in QUESTIONS))
    return path


def agent(answers, text="I think. \\boxed{%s} TERMINATE"):
    """Answer with `text`, moderators in JSON, the answer to the question that the conversation is about."""

    def reply(body):
        prompt = "\n".join(message["content"] for message in body["messages"])
        (answer,) = [answers[question] for question in answers if question in prompt]
        if '"preference"' in body["messages"][-1]["content"]:
            return json.dumps({"preference": "yes", "answer": answer})
        return text % answer

    return reply
