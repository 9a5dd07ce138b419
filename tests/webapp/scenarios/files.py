"""Small files in the formats that can be imported; every record is our own."""

import json
from copy import deepcopy

CASINO_DIALOGUE = {
    "dialogue_id": 7,
    "chat_logs": [
        {"text": "Hello! I run hot at night, so water is what I am after.", "task_data": {}, "id": "mturk_agent_2"},
        {"text": "Fine by me, I mostly need food.", "task_data": {}, "id": "mturk_agent_1"},
        {
            "text": "Submit-Deal",
            "task_data": {
                "issue2youget": {"Food": "0", "Water": "3", "Firewood": "2"},
                "issue2theyget": {"Food": "3", "Water": "0", "Firewood": "1"},
            },
            "id": "mturk_agent_2",
        },
        {"text": "Reject-Deal", "task_data": {"data": "reject_deal"}, "id": "mturk_agent_1"},
        {"text": "Two firewood for me <please>, then yes.", "task_data": {}, "id": "mturk_agent_1"},
        {
            "text": "Submit-Deal",
            "task_data": {
                "issue2youget": {"Food": "0", "Water": "3", "Firewood": "1"},
                "issue2theyget": {"Food": "3", "Water": "0", "Firewood": "2"},
            },
            "id": "mturk_agent_2",
        },
        {"text": "Accept-Deal", "task_data": {"data": "accept_deal"}, "id": "mturk_agent_1"},
    ],
    "participant_info": {
        "mturk_agent_1": {
            "value2issue": {"High": "Food", "Medium": "Firewood", "Low": "Water"},
            "value2reason": {"High": "Long hikes.", "Medium": "Cold nights.", "Low": "A spring is near."},
        },
        "mturk_agent_2": {
            "value2issue": {"High": "Water", "Medium": "Food", "Low": "Firewood"},
            "value2reason": {"High": "I drink a lot.", "Medium": "Snacks.", "Low": "I have a stove."},
        },
    },
    "annotations": [],
}
# By hand: seat 0 gets food 3 and firewood 2 at 5 and 4 a unit: 23; seat 1 water 3, firewood 1 at 5 and 3: 18.
CASINO_POINTS = (23.0, 18.0)


def casino(*changes):
    """A CaSiNo file with one dialogue per change (a function that edits the dialogue)."""
    dialogues = []
    for number, change in enumerate(changes or (lambda d: None,)):
        dialogue = deepcopy(CASINO_DIALOGUE)
        dialogue["dialogue_id"] = 7 + number
        change(dialogue)
        dialogues.append(dialogue)
    return json.dumps(dialogues)


def deal(written, talk, output, partner):
    parts = {"input": written, "dialogue": talk, "output": output, "partner_input": partner}
    return " ".join(f"<{name}> {text} </{name}>" for name, text in parts.items())


AGREED = deal(
    "1 4 2 3 1 0",
    "YOU: book for me ? <eos> THEM: ok , rest is mine <eos> YOU: <selection>",
    "item0=1 item1=0 item2=0 item0=0 item1=2 item2=1",
    "1 2 2 4 1 0",
)
AGREED_MIRROR = deal(
    "1 2 2 4 1 0",
    "THEM: book for me ? <eos> YOU: ok , rest is mine <eos> THEM: <selection>",
    "item0=0 item1=2 item2=1 item0=1 item1=0 item2=0",
    "1 4 2 3 1 0",
)
NONE_AGREED = deal(
    "1 4 2 3 1 0",
    "THEM: all mine <eos> YOU: no <eos> THEM: <selection>",
    " ".join(["<no_agreement>"] * 6),
    "1 2 2 4 1 0",
)
DISAGREED = deal(
    "1 4 2 3 1 0", "THEM: hats ? <eos> YOU: sure <eos> THEM: <selection>", " ".join(["<disagree>"] * 6), "1 2 2 4 1 0"
)

ENVIRONMENT = {
    "pk": "E1", "codename": "shared_kitchen", "source": "own", "scenario": "Two flatmates share one kitchen.",
    "agent_goals": ["Get the big shelf (<extra_info>Extra information: you bake</extra_info>)", "Keep things tidy"],
    "relationship": 3, "age_constraint": "[(18, 70), (18, 70)]", "occupation_constraint": None,
}  # fmt: skip
AGENT_A = {
    "pk": "A1", "first_name": "Nora", "last_name": "Lind", "age": 31, "occupation": "Baker", "gender": "Woman",
    "gender_pronoun": "She/her", "public_info": "Nora bakes.", "big_five": "Openness - High", "moral_values": ["Care"],
    "schwartz_personal_values": ["Security"], "personality_and_values": "Warm.", "decision_making_style": "Intuitive",
    "secret": "Nora hates cake.",
}  # fmt: skip
AGENT_B = {**AGENT_A, "pk": "A2", "first_name": "Juri", "last_name": "Halm", "secret": "Juri sold the oven."}
PAIRING = {"pk": "C1", "env_id": "E1", "agent_ids": ["A1", "A2"]}
PREFIX = ":sotopia.database.persistent_profile."


def redis_dump(**extra):
    return {
        f"{PREFIX}EnvironmentProfile:E1": ENVIRONMENT,
        f"{PREFIX}AgentProfile:A1": AGENT_A,
        f"{PREFIX}AgentProfile:A2": AGENT_B,
        f"{PREFIX}EnvAgentComboStorage:C1": PAIRING,
        f"{PREFIX}RelationshipProfile:R1": {"pk": "R1", "agent_1_id": "A1", "agent_2_id": "A2", "relationship": 3},
        **extra,
    }


def write_sotopia_jsonl(folder):
    """Write the four files of the evaluation form, with its other id names and text where the dump has numbers."""

    def renamed(record, new):
        return {new if key == "pk" else key: value for key, value in record.items()}

    relationship = {"relationship_id": "R1", "agent1_id": "A1", "agent2_id": "A2", "relationship": "3"}
    environment = {**renamed(ENVIRONMENT, "env_id"), "relationship": "3", "agent_constraint": "nan"}
    rows = {
        "environment_profiles.jsonl": [environment],
        "agent_profiles.jsonl": [renamed(AGENT_A, "agent_id"), renamed(AGENT_B, "agent_id")],
        "env_agent_combo_storages.jsonl": [renamed(PAIRING, "combo_id")],
        "relationship_profiles.jsonl": [relationship],
    }
    folder.mkdir(exist_ok=True)
    for name, lines in rows.items():
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


NORA, JURI = "Nora Lind", "Juri Halm"
NORAS = (
    "Nora Lind is a 31-year-old woman baker. She/her pronouns. Nora bakes. Personality and values description: Warm."
)
JURIS = "Juri Halm is a 40-year-old man tram driver. He/him pronouns. Juri drives."
GOALS = ("Get the big shelf", "Keep things tidy")


def episode_context(goals=GOALS, backgrounds=(f"{NORAS} Nora's secrets: Hates cake.", JURIS)):
    """What a judge reads of the scene, or an agent where parts are `Unknown`."""
    lines = ["Here is the context of this interaction:", "Scenario: Two flatmates share one kitchen."]
    lines += [f"Participants: {NORA} and {JURI}"]
    lines += [f"{name}'s background: {text}" for name, text in zip((NORA, JURI), backgrounds, strict=True)]
    return "\n".join([*lines, *(f"{name}'s goal: {goal}" for name, goal in zip((NORA, JURI), goals, strict=True))])


SCORES = {
    "believability": 9, "relationship": 2, "knowledge": 4, "secret": -1, "social_rules": 0,
    "financial_and_material_benefits": -3, "goal": 10,
}  # fmt: skip
"""Their mean is (9 + 2 + 4 - 1 + 0 - 3 + 10) / 7 = 3."""


def prompted_episode(**changes):
    """An episode whose conversation stands in the judge's prompt; the last turn is empty."""
    turns = [f'{NORA} said: "The big shelf is mine, Juri:\nTurn #9 is no turn."', f"{JURI} [action] moves his cups"]
    turns += [f"{NORA} [non-verbal communication] smiles", ""]
    prompt = "\n".join([episode_context(), *(f"Turn #{n}\n{turn}" for n, turn in enumerate(turns, 1))])
    record = {"pk": "P1", "environment": "E1", "tag": "t", "models": ["judge-1", "m-a", "m-b"]}
    return {**record, "rewards_prompt": f"Prompt after formatting:\n{prompt},", **changes}


def episode_log(**changes):
    """An episode as SOTOPIA logs it: each agent sees its own goal, and of the other what friends may know."""
    written = {
        NORA: episode_context((GOALS[0], "Unknown")),
        JURI: episode_context(("Unknown", GOALS[1]), (NORAS, JURIS)),
    }
    quiet = {name: [name, "Environment", "did nothing"] for name in written}
    messages = [
        [["Environment", name, f"\n{text}\nConversation Starts:\n"] for name, text in written.items()],
        [["Environment", NORA, "Turn #0: …"], quiet[NORA], [JURI, "Environment", 'said: "No, thanks."']],
        [quiet[NORA], quiet[JURI]],
        [quiet[NORA], [JURI, "Environment", "left the conversation"]],
        [["Environment", NORA, "Turn #4: "]],
    ]
    messages[0] += [[NORA, "Environment", 'said: "The shelf, please."'], quiet[JURI]]
    comments = ("Agent 1 comments:", "goal: She got it.", "knowledge: A little.", "Agent 2 comments:", "goal: No.")
    return {
        "pk": "L1",
        "environment": "E1",
        "agents": ["A1", "A2"],
        "models": ["judge-1", "m-a", "m-b"],
        "messages": messages,
        "rewards": [[3.0, {**SCORES, "overall_score": 3.0}], 0.0],
        "reasoning": "\n".join(("Environment comments: over", *comments)),
        "rewards_prompt": "",
        **changes,
    }


def write_sotopia_episodes(folder, *episodes, scores):
    folder.mkdir(exist_ok=True)
    (folder / "episodes.jsonl").write_text("".join(json.dumps(episode) + "\n" for episode in episodes))
    (folder / "scores.json").write_text(json.dumps(scores))
    return folder


SIX = ("Ana", "Bo", "Cy", "Di", "Ed", "Flo")
"""A villager, a wolf, the seer, a wolf, the witch and a villager."""


def six(turn_texts, winners, **changes):
    """A line of six-player Werewolf; each turn is `name: kill Ana` or `name: "words"`; `name:` is unreadable."""
    answers = []
    for turn in turn_texts:
        name, _, rest = turn.partition(": ")
        kind, text = ("speak", rest.strip('"')) if rest.startswith('"') else ("action", rest)
        response = json.dumps({"action_type": kind, "argument": text}) if rest else "no JSON"
        answers.append({"turn_number": len(answers), "agent_name": name.rstrip(":"), "response": response})
    rewards = [1.0 if name in winners else -1.0 for name in SIX]
    return json.dumps({"model_mapping": dict.fromkeys(SIX, "m"), "rewards": rewards, "turns": answers, **changes})


VILLAGE, WOLVES = ("Ana", "Cy", "Ed", "Flo"), ("Bo", "Di")
SIX_SAVED = [
    *("Bo: kill Ana", "Di: kill Flo", "Cy: inspect Di", "Ed: save Flo"),
    *('Ana: "Good morning."', 'Bo: "Hm."', 'Cy: "Di is a wolf."', 'Di: "No."', 'Ed: "So."', 'Flo: "Thanks."'),
    *("Ana: vote Di", "Bo: vote Cy", "Cy: vote Di", "Di: vote Cy", "Ed: vote Bo", "Flo: vote Bo"),
    *("Bo: kill Ana", "Cy: inspect Bo", "Ed: poison Bo"),
]
"""Night 1 splits between Ana and Flo, and nobody dies: the witch saved Flo, so it was Flo. The first vote ties between
Di, Cy and Bo, of whom Di does not act any more. In night 2 the witch poisons the last wolf: the village wins."""


def nine():
    """A game of nine people: a run-off, last words, a hunter who is voted out and shoots nobody."""
    roles = ("Seer", "Witch", "Hunter", "Villager", "Villager", "Villager", "Werewolf", "Werewolf", "Werewolf")

    def votes(*pairs):
        return {str(voter): vote for voter, vote in pairs}

    state = {
        "roles": {str(n): role for n, role in enumerate(roles, 1)},
        "Day 1 Night": {"Seer": 4, "Werewolf": 5, "Witch antidote": 5, "Death Message": []},
        "Day 1 Daytime": {
            "Voting Pattern": votes((1, 7), (2, 7), (3, 7), (4, 6), (5, 6), (6, 7), (7, 6), (8, 6), (9, -1)),
            "Voting Pattern (Round 2)": votes((1, 7), (2, 6), (3, 6), (4, 6), (5, -1), (8, 6), (9, 6)),
        },
        "Day 2 Night": {"Seer": 8, "Werewolf": 1, "Witch": -1, "Death Message": [1]},
        "Day 2 Daytime": {"Voting Pattern": votes((2, 8), (3, 8), (4, 8), (5, 3), (7, 3), (8, 3), (9, 3))},
        "Game Result": "Werewolves Win",
    }
    order = {1: (4, 3, 2, 1, 9, 8, 7, 6, 5), 2: (5, 7, 8, 9, 2, 3, 4)}
    audio = {f"Day {day} Daytime - [{n}] is speaking": {"text": f"I am {n}."} for day in order for n in order[day]}
    audio |= {f"Day 1 Daytime - [{n}] is speaking (round 2)": {"text": f"Not {n}!"} for n in (7, 6)}
    audio["Day 1 Daytime - [6] gives the last words"] = {"text": "You were wrong."}
    return {"game_state": state, "audio": audio}
