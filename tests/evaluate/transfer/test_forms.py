"""One model and the debate, with scripted replies: who hears what, what ends the debate, what is never passed on."""

import asyncio

import pytest

from training.engines.base import ChatReply, Sampling
from training.errors import WindowFull
from training.evaluate.transfer import forms
from training.evaluate.transfer.forms import FORMS, answer_in
from training.evaluate.transfer.questions import Question
from training.evaluate.transfer.transcript import Conversation, Transcript, score, seeds

QUESTION = Question(id="q", question="What is 40 + 32?", answer="#### 72")


class Scripted:
    """A chat model that gives its replies in order, and raises those that are errors."""

    def __init__(self, *replies):
        self.replies, self.heard, self.seeds = list(replies), [], []

    async def reply(self, messages, sampling, seed=None):
        self.heard.append([(message.role, message.content) for message in messages])
        self.seeds.append(seed)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return ChatReply(reply, 10, 2)

    async def close(self):
        pass


def hold(name, model):
    form, calls = FORMS[name]
    conversation = Conversation(model, Sampling(), seeds(7, name, QUESTION, calls))
    return asyncio.run(form(QUESTION, conversation)), conversation.replies


def test_a_single_model_is_asked_once():
    model = Scripted("<think>hm</think>It is \\boxed{72}.")
    ending, replies = hold("single", model)
    assert (ending.final, ending.by) == ("It is \\boxed{72}.", "reply")
    assert model.heard == [[("user", QUESTION.prompt())]]
    assert [(reply.agent, reply.text) for reply in replies] == [("model", "<think>hm</think>It is \\boxed{72}.")]


def test_a_moderator_who_prefers_an_answer_ends_the_debate():
    verdict = 'Well. {"preference": "Yes", "side": "negative", "reason": "…", "answer": 72}'
    model = Scripted("<think>secret</think>I say 70.", "No, 72.", verdict)
    ending, replies = hold("debate", model)
    assert (ending.final, ending.by) == ("72", "moderator")
    assert [reply.agent for reply in replies] == ["affirmative", "negative", "moderator"]
    negative, moderator = model.heard[1], model.heard[2]
    assert "negative side" in negative[0][1]
    assert "I say 70." in negative[1][1]
    assert "disagree" in negative[1][1]
    assert "I say 70." in moderator[1][1]
    assert "No, 72." in moderator[1][1]
    assert "secret" not in str(model.heard)


def test_a_moderator_who_copies_the_form_decides_nothing():
    form = forms.ROUND.rpartition("\n")[2].replace("{{", "{").replace("}}", "}")
    assert forms.answer_in(form) == ""
    assert forms.answer_in(form.replace('"answer": ""', '"answer": "72"')) == "72"


def test_after_three_rounds_a_judge_decides_on_the_opening_answers():
    rounds = [reply for n in (1, 2, 3) for reply in (f"aff {n}", f"neg {n}", "no JSON")]
    model = Scripted(*rounds, "Candidates: 70, 72.", '{"reason": "sums", "answer": "72 eggs"}')
    ending, replies = hold("debate", model)
    assert (ending.final, ending.by) == ("72 eggs", "judge")
    assert [reply.agent for reply in replies] == ["affirmative", "negative", "moderator"] * 3 + ["judge"] * 2
    assert len(model.heard) == FORMS["debate"][1]
    assert len(set(model.seeds)) == 11
    second = model.heard[3]  # the affirmative side, in the second round
    assert [role for role, _ in second] == ["system", "user", "assistant", "user"]
    assert second[2] == ("assistant", "aff 1")
    assert "neg 1" in second[3][1]
    candidates = model.heard[9][-1][1]
    assert "aff 1" in candidates
    assert "neg 1" in candidates
    assert "aff 3" not in candidates


def test_a_judge_who_writes_no_json_is_scored_as_any_reply():
    model = Scripted(*["no"] * 10, "I decide for \\boxed{72}.")
    ending, replies = hold("debate", model)
    scored = score(QUESTION, Transcript(question="q", replies=tuple(replies), final=ending.final, ended=ending.by))
    assert (scored.correct, scored.answer, scored.rule) == (True, "72", "boxed")


def test_a_judge_who_leaves_the_answer_empty_has_none():
    """The numbers in the reasons are no answers."""
    model = Scripted(*["no"] * 10, '{"reason": "72 is wrong, 70 too", "answer": ""}')
    ending, replies = hold("debate", model)
    scored = score(QUESTION, Transcript(question="q", replies=tuple(replies), final=ending.final, ended=ending.by))
    assert (ending.final, ending.by) == ("", "judge")
    assert (scored.correct, scored.answer) == (False, None)


def test_a_moderator_who_answers_in_latex_ends_the_debate():
    model = Scripted("70", "72", '{"preference": "yes", "reason": "\\(72\\)", "answer": "\\boxed{72}"}')
    ending, _ = hold("debate", model)
    assert (ending.final, ending.by) == ("\\boxed{72}", "moderator")


@pytest.mark.parametrize(
    "written, answer",
    [
        (r"\boxed{B}", r"\boxed{B}"),
        (r"\\boxed{B}", r"\boxed{B}"),
        (r"\text{B}", r"\text{B}"),
        (r"\frac{1}{2} \rightarrow \underline{2}", r"\frac{1}{2} \rightarrow \underline{2}"),
        (r"\(72\) or \[72\] or \$72", r"\(72\) or \[72\] or \$72"),
        (r"a\nb \t72", "a\nb \t72"),
        (r"caf\u00e9 \/ \"72\"", 'café / "72"'),
        (r"72\\", "72\\"),
    ],
)
def test_latex_in_a_json_answer_need_not_be_escaped(written, answer):
    r"""`\b`, `\f`, `\r` and `\t` before a letter begin a command of LaTeX, not a control character."""
    assert answer_in('{"answer": "' + written + '"}') == answer


@pytest.mark.parametrize(
    "reply, answer",
    [
        ('{"preference": "no", "answer": "72"}', ""),
        ('{"preference": "No.", "answer": "72"}', ""),
        ('{"preference": false, "answer": "72"}', ""),
        ('{"preference": "now clearly", "answer": "72"}', "72"),
        ('{"preference": true, "answer": "72"}', "72"),
        ('{"preference": "yes", "answer": ""}', ""),
        ('<think>{"answer": 1}</think>{"answer": "72"}', "72"),
        ('```json\n{"reason": "a\nb", "answer": "\\\\boxed{72}"}\n```', "\\boxed{72}"),
        ('{"answer": {"value": 72}} {"answer": 72}', "72"),
        ('{"answer": 0.00001}', "0.00001"),
        ('{"answer": 1e22}', "1e22"),
        ('{"answer": 1.50}', "1.50"),
        ('{"answer": ' + "7" * 5000 + "}", "7" * 5000),
        ('{"answer": true}', None),
        ('{"reason": "72", "answer": null}', ""),
        ('{"answer": [72]}', None),
        ("{{{{", None),
        ("", None),
    ],
)
def test_the_answer_of_a_json_reply(reply, answer):
    assert answer_in(reply) == answer


def test_half_of_a_pair_of_surrogates_in_an_answer_can_be_stored():
    assert answer_in('{"answer": "72 \\ud83d"}') == "72 ?"


def test_a_reply_full_of_braces_is_read_to_a_bound():
    last = '{"answer": "72"}'
    assert answer_in("{" * 1_000_000 + last) == "72"
    assert answer_in('{"' * (forms.MOST_OBJECTS - 1) + last) == "72"
    assert answer_in('{"' * forms.MOST_OBJECTS + last) is None


def test_a_failed_call_keeps_what_was_said_and_has_no_score():
    model = Scripted("I say 70.", WindowFull("too long"))
    conversation = Conversation(model, Sampling(), seeds(7, "debate", QUESTION, 11))
    with pytest.raises(WindowFull):
        asyncio.run(FORMS["debate"][0](QUESTION, conversation))
    scored = score(QUESTION, Transcript(question="q", replies=tuple(conversation.replies), error="too long"))
    assert [reply.text for reply in conversation.replies] == ["I say 70."]
    assert scored.correct is None
    assert scored.answer is None


def test_private_text_is_not_scored():
    scored = score(QUESTION, Transcript(question="q", replies=(), final="<think>72", ended="reply"))
    assert (scored.correct, scored.rule) == (False, "none")


def test_seeds_depend_on_seed_form_question_and_call():
    other = QUESTION.model_copy(update={"id": "r"})
    lists = [seeds(1, "single", QUESTION, 3), seeds(2, "single", QUESTION, 3), seeds(1, "chat", QUESTION, 3)]
    lists.append(seeds(1, "single", other, 3))
    assert lists[0] == seeds(1, "single", QUESTION, 3)
    numbers = [number for each in lists for number in each]
    assert len(set(numbers)) == 12
    assert all(0 <= number < 2**31 for number in numbers)
