"""A script for Werewolf: keeps a notebook of claims, votes and accusations, and plays its role by plain rules.

Seers report their findings, wolves lie about their role and vote together, and the others follow the evidence. The
script reads only its observation, and the names and the seed of the scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from training.games.werewolf.actions import NOBODY
from training.games.werewolf.script import lines
from training.games.werewolf.script.notes import Notes
from training.players.scripted import Script, do, offered, pick
from training.records import Observation, Scenario, Seat
from training.seeding import derive, rng

SURE, LIKELY = 40.0, 20.0
"""Suspicion from which a player counts as exposed, or as a target of the hunter."""
BLUFF = 0.6
"""Probability that a wolf claims to be the seer when another player does."""


class WerewolfScript(Script):
    """Plays one seat of any role."""

    def __init__(self, scenario: Scenario, seat: Seat) -> None:
        super().__init__(scenario, seat)
        self._seed = derive(scenario.seed, "scripted", "werewolf")

    def answer(self, observation: Observation, chance: Random) -> str:
        notes = Notes(observation, self.seat, self.names)
        acts: dict[str, Callable[[Observation, Notes, Random], str]] = {
            "speak": self._speak,
            "whisper": self._whisper,
            "bid": self._bid,
            "vote": self._vote,
            "kill": self._kill,
            "inspect": self._inspect,
            "guard": self._watch,
            "protect": self._watch,
            "pass": self._witch,
            "shoot": self._shoot,
        }
        name = next(action.name for action in reversed(observation.actions))
        return acts[name](observation, notes, chance)

    # --- suspicion ---

    def _noise(self, notes: Notes, about: Seat, *, shared: bool = False) -> float:
        """Return a random number in [0, 1) about a player, constant for a day; `shared` is the pack's number."""
        whim = "pack" if shared else str(self.seat)
        return rng(self._seed, whim, notes.night, about).random()

    def _suspicion(self, notes: Notes, about: Seat) -> float:
        """Return the evidence against a player from a villager's point of view."""
        total = self._noise(notes, about) + self._record(notes, about)
        if about in notes.looked:
            return 100.0 if notes.looked[about] else -100.0
        trusted = notes.trusted_seer()
        if about in notes.claims and notes.role == notes.claims[about] == "seer":
            return 80.0  # this seat is the only seer
        if about == trusted:
            total -= 15
        elif about in notes.claimants("seer"):
            total += 12
        elif about in notes.claims:
            total -= 3
        if trusted is not None and about in notes.reports[trusted]:
            total += 50 if notes.reports[trusted][about] else -20
        return total + self._lies(notes, about)

    def _record(self, notes: Notes, about: Seat) -> float:
        """Return the evidence from votes: votes for wolves lower the suspicion, votes for others raise it a little."""
        total = 0.0
        for ballot in notes.votes:
            role = notes.revealed.get(ballot.get(about, -1))
            if role is not None:
                total += -4 if role == "werewolf" else 1.5
        return total

    def _lies(self, notes: Notes, about: Seat) -> float:
        """Return the evidence from false reports and false claims to be the seer."""
        total = 0.0
        for target, guilty in notes.reports[about].items():
            role = "villager" if target == self.seat else notes.revealed.get(target)
            if role is not None and guilty != (role == "werewolf"):
                total += 80
        if notes.claims.get(about) == "seer" and any(
            role == "seer" and seat != about for seat, role in notes.revealed.items()
        ):
            total += 60
        return total

    def _ranked(self, notes: Notes, seats: Iterable[Seat]) -> list[Seat]:
        """Return the seats, the most suspected first."""
        return sorted(seats, key=lambda seat: -self._suspicion(notes, seat))

    def _aim(self, notes: Notes) -> Seat:
        """Return the seat that this seat wants to vote out today."""
        if notes.role != "werewolf":
            return self._ranked(notes, notes.alive)[0]
        exposed = [mate for mate in notes.pack if self._suspicion(notes, mate) >= SURE and mate not in notes.dead]
        if exposed and self._noise(notes, exposed[0]) < 0.5:
            return exposed[0]  # the packmate is lost anyway, so vote with the village
        prey = [seat for seat in notes.alive if seat not in notes.pack]
        for mate, target in sorted(notes.accused.items()):
            if mate in notes.pack and target in prey:
                return target
        return max(prey, key=lambda seat: (self._threat(notes, seat), self._suspicion(notes, seat)))

    def _threat(self, notes: Notes, about: Seat) -> bool:
        """Return whether a player has reported a member of the pack as a wolf."""
        pack = notes.pack | {self.seat}
        return any(guilty and target in pack for target, guilty in notes.reports[about].items())

    # --- by day ---

    def _speak(self, observation: Observation, notes: Notes, chance: Random) -> str:
        if self.seat in notes.dead:
            whom = self.names[self._ranked(notes, notes.alive)[0]]
            words = pick(chance, lines.LAST_WORDS_OF_A_WOLF if notes.role == "werewolf" else lines.LAST_WORDS)
            return do(observation, "speak", words.format(whom=whom))
        speech = self._as_seer(notes, chance) or self._own_role(notes, chance)
        return do(observation, "speak", speech or self._accusation(notes, chance))

    def _as_seer(self, notes: Notes, chance: Random) -> str:
        """Return a seer's report, true or bluffed by a wolf; empty for other roles, or while waiting is better."""
        if notes.role == "seer":
            results = {seat: guilty for seat, guilty in notes.looked.items() if seat not in notes.dead or guilty}
            rivals = any(seat != self.seat for seat in notes.claimants("seer"))
            found_wolf = any(guilty and seat not in notes.dead for seat, guilty in results.items())
            pressed = self.seat in notes.accused.values() or self.seat in notes.claims
            if not (found_wolf or rivals or pressed or len(results) > 1) or not results:
                return ""
        elif notes.role == "werewolf" and self._bluffs(notes):
            results = self._invented(notes)
        else:
            return ""
        findings = [
            pick(chance, lines.GUILTY if guilty else lines.INNOCENT).format(whom=self.names[seat])
            for seat, guilty in sorted(results.items(), key=lambda entry: not entry[1])
        ]
        guilty_one = next((seat for seat, guilty in results.items() if guilty and seat not in notes.dead), None)
        call = "" if guilty_one is None else pick(chance, lines.LET_US_VOTE).format(whom=self.names[guilty_one])
        return f"{pick(chance, lines.SEER).format(results=' '.join(findings))} {call}".strip()

    def _bluffs(self, notes: Notes) -> bool:
        """Return whether this wolf is, or becomes now, a false seer; at most one of the pack is."""
        if notes.claims.get(self.seat) == "seer":
            return True
        if any(notes.claims.get(mate) == "seer" for mate in notes.pack):
            return False
        called = any(reports.get(self.seat) for reports in notes.reports.values())
        threatened = any(self._threat(notes, seat) for seat in notes.claimants("seer"))
        return (called or threatened) and self._noise(notes, self.seat, shared=True) < BLUFF + 0.3 * called

    def _invented(self, notes: Notes) -> dict[Seat, bool]:
        """Return a false seer's results: its earlier reports, and a werewolf to vote for today."""
        results = dict(notes.reports[self.seat])
        if not any(guilty and seat not in notes.dead for seat, guilty in results.items()):
            prey = [seat for seat in notes.alive if seat not in notes.pack and seat not in results]
            rivals = [seat for seat in notes.claimants("seer") if seat in prey]
            if prey:
                results[(rivals or self._ranked(notes, prey))[0]] = True
        return results

    def _own_role(self, notes: Notes, chance: Random) -> str:
        """Return the claim of a role with a power that is about to be voted out."""
        pressure = sum(target == self.seat for target in notes.accused.values())
        if notes.role in ("villager", "werewolf", "seer") or pressure < 2 or self.seat in notes.claims:
            return ""
        return pick(chance, lines.OTHER_ROLES).format(role=notes.role)

    def _accusation(self, notes: Notes, chance: Random) -> str:
        """Return an accusation of the seat that this seat would vote for, with a reason."""
        target = self._aim(notes)
        if notes.night == 1 and not notes.accused and self._suspicion(notes, target) < LIKELY and chance.random() < 0.5:
            return pick(chance, lines.OPENINGS)
        return pick(chance, lines.SUSPICIONS).format(whom=self.names[target], why=self._reason(notes, target, chance))

    def _reason(self, notes: Notes, target: Seat, chance: Random) -> str:
        trusted = notes.trusted_seer()
        if trusted is not None and notes.reports[trusted].get(target):
            return pick(chance, lines.NAMED_BY_SEER).format(seer=self.names[trusted])
        if self.seat in notes.reports[target]:
            return pick(chance, lines.LIED_ABOUT_ME)
        if notes.claims.get(target) == "seer":
            return pick(chance, lines.LIAR)
        return pick(chance, lines.WRONG_VOTES if self._record(notes, target) > 0 else lines.WEAK_REASONS)

    def _bid(self, observation: Observation, notes: Notes, chance: Random) -> str:
        """Bid high with a report or after an accusation; bid 0 after having spoken."""
        urgent = bool(self._as_seer(notes, chance)) or self.seat in notes.accused.values()
        return do(observation, "bid", level=0 if self.seat in notes.spoke else 4 if urgent else 1 + chance.randrange(2))

    def _vote(self, observation: Observation, notes: Notes, chance: Random) -> str:
        others = sorted(self._ranked(notes, notes.alive), key=lambda seat: seat in notes.pack)
        return self._at(observation, "vote", [self._aim(notes), *others])

    def _at(self, observation: Observation, name: str, targets: Iterable[Seat]) -> str:
        """Return the action with the first of `targets` that is offered, or nobody if none is."""
        action = offered(observation, name)
        assert action is not None
        choices = set(action.args[0].choices)
        able = [seat for seat in targets if self.names[seat] in choices]
        return do(observation, name, target=self.names[able[0]] if able else NOBODY)

    # --- at night ---

    def _prey(self, notes: Notes) -> Seat:
        """Return the victim of this wolf: a packmate's proposal, else by claimed role and the pack's random number."""
        prey = [seat for seat in notes.alive if seat not in notes.pack]
        proposed = [target for _, target in sorted(notes.whispered.items()) if target in prey]
        if proposed:
            return proposed[0]
        weights = {"seer": 4, "witch": 3, "guard": 2, "doctor": 2, "hunter": -1}
        return max(
            prey, key=lambda seat: weights.get(notes.claims.get(seat, ""), 0) + self._noise(notes, seat, shared=True)
        )

    def _whisper(self, observation: Observation, notes: Notes, chance: Random) -> str:
        return do(observation, "whisper", pick(chance, lines.WHISPERS).format(whom=self.names[self._prey(notes)]))

    def _kill(self, observation: Observation, notes: Notes, chance: Random) -> str:
        return self._at(observation, "kill", [self._prey(notes)])

    def _inspect(self, observation: Observation, notes: Notes, chance: Random) -> str:
        fresh = [seat for seat in notes.alive if seat not in notes.looked]
        return self._at(observation, "inspect", self._ranked(notes, fresh))

    def _watch(self, observation: Observation, notes: Notes, chance: Random) -> str:
        """Guard the trusted seer, else the least suspected player; the own seat comes last."""
        name = observation.actions[0].name
        trusted = notes.trusted_seer()
        first = [] if trusted is None else [trusted]
        others = [*reversed(self._ranked(notes, notes.alive)), self.seat]
        return self._at(observation, name, [*first, *others])

    def _witch(self, observation: Observation, notes: Notes, chance: Random) -> str:
        """Save most victims; poison an exposed player."""
        if offered(observation, "save") and (notes.night > 1 or chance.random() < 0.7 or notes.victim == self.seat):
            return do(observation, "save")
        worst = self._ranked(notes, notes.alive)[0]
        if offered(observation, "poison") and self._suspicion(notes, worst) >= SURE:
            return do(observation, "poison", target=self.names[worst])
        return do(observation, "pass")

    def _shoot(self, observation: Observation, notes: Notes, chance: Random) -> str:
        """Shoot the most suspected player if the suspicion is high enough, or after two votes."""
        worst = self._ranked(notes, notes.alive)
        able = [seat for seat in worst[:1] if self._suspicion(notes, seat) >= LIKELY or len(notes.votes) > 1]
        return self._at(observation, "shoot", able)
