"""The filter of a search over labels, as the query string of its page holds it, and the labels that it selects.

A label about a turn, words or a pair is of the seat that moved; one about a seat is of that seat.
"""

from __future__ import annotations

import math
from typing import Any

from django import forms
from django.contrib.postgres.search import SearchQuery
from django.db.models import CharField, Func, IntegerField, Q, QuerySet
from django.db.models.expressions import Combinable, F
from django.db.models.functions import Cast, Coalesce

from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.judgments.models import Codebook, CodebookVersion, Judgment, Label, LabelledGame
from webapp.judgments.models.judged import is_consented

KINDS = ("match", "episode", "conversation")
AUTHORS = (("people", "people"), ("model", "judge models"), ("rule", "rules"), ("import", "imports"))
PLACES = (("game", "games"), ("seat", "seats"), ("turn", "turns"), ("span", "words"), ("pair", "pairs of turns"))


class LabelFilter(forms.Form):
    """What is searched for. An empty field restricts nothing; a wrong value selects nothing and says why."""

    label = forms.CharField(required=False, max_length=130)
    value = forms.CharField(required=False, max_length=80)
    q = forms.CharField(required=False, max_length=200, strip=True)
    game = forms.CharField(required=False, max_length=60)
    role = forms.CharField(required=False, max_length=60)
    outcome = forms.ChoiceField(
        required=False,
        choices=[("", ""), ("won", "won"), ("lost", "lost"), ("survived", "survived"), ("eliminated", "eliminated")],
    )
    run = forms.IntegerField(required=False, min_value=1, max_value=2**31 - 1)
    first = forms.IntegerField(required=False, min_value=0, max_value=2**31 - 1)
    last = forms.IntegerField(required=False, min_value=0, max_value=2**31 - 1)
    queue = forms.IntegerField(required=False, min_value=1, max_value=2**31 - 1)
    by = forms.ChoiceField(required=False, choices=[("", ""), *AUTHORS])
    about = forms.ChoiceField(required=False, choices=[("", ""), *PLACES])

    def clean_label(self) -> tuple[str, str] | None:
        """The codebook's name and the label type's, which the field joins by a slash; the first may be left out."""
        codebook, _, label = self.cleaned_data["label"].rpartition("/")
        return (codebook, label) if label else None

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        first, last = cleaned.get("first"), cleaned.get("last")
        if first is not None and last is not None and first > last:
            self.add_error("last", "The last step is before the first.")
        return cleaned

    def labels(self, user: User) -> QuerySet[Label]:
        """Return the labels of a valid filter that this person may read, with what is shown of each; newest first.

        Of matches, those that the person may see as such: the words of a private game are not among them.
        """
        return of_filter(self.cleaned_data, readable(user))


def readable(user: User) -> QuerySet[Label]:
    """Return the labels of games that this person may see, without those that would prejudice them."""
    visible = Q(judgment__match=None)
    if Judgment.everything.filter(match__isnull=False).exists():  # without such, who may see which is a long condition
        visible |= Q(judgment__match__in=Match.objects.visible_to(user).values("pk"))
    labels = Label.objects.filter(visible, *is_consented("judgment__"), judgment__unscored=False)
    judgments = Judgment.everything.readable_by(user)
    withheld = judgments.query.has_filters()  # from most readers nothing is
    return labels.filter(judgment__in=judgments.values("pk")) if withheld else labels


def placed(labels: QuerySet[Label]) -> QuerySet[Label]:
    """With the name of the game and the seat that each is about, `of_game` and `of_seat`, newest first."""
    seat = Coalesce(
        "seat", Cast(_entry("movers", F("turn")), IntegerField()), "judgment__seat", output_field=IntegerField()
    )
    return labels.annotate(of_game=_of_game("game", CharField()), of_seat=seat).order_by("-judgment", "pk")


def of_filter(chosen: dict[str, Any], labels: QuerySet[Label]) -> QuerySet[Label]:
    """Return those of the labels that the cleaned values of a `LabelFilter` select, newest first."""
    selected: Any = placed(labels)
    if chosen.get("label"):
        codebook, name = chosen["label"]
        selected = selected.filter(name=name)
        if codebook:  # by keys, of which the database knows how many judgments have them
            versions = CodebookVersion.objects.filter(codebook__name=codebook).values_list("pk", flat=True)
            selected = selected.filter(judgment__codebook_version__in=list(versions))
    if chosen.get("value"):
        selected = selected.filter(_has_value(chosen["value"]))
    if chosen.get("q"):
        selected = selected.filter(_says(chosen["q"]))
    if chosen.get("game"):
        selected = selected.filter(of_game=chosen["game"])
    if chosen.get("role"):
        selected = selected.annotate(of_role=_entry("roles", F("of_seat"))).filter(of_role=chosen["role"])
    if chosen.get("outcome"):
        name, value = OUTCOMES[chosen["outcome"]]
        selected = selected.annotate(outcome=_entry(name, F("of_seat"))).filter(outcome=value)
    ranges = {
        "judgment__episode__run": chosen.get("run"),
        "judgment__episode__step__gte": chosen.get("first"),
        "judgment__episode__step__lte": chosen.get("last"),
        "judgment__queue": chosen.get("queue"),
    }
    selected = selected.filter(**{name: value for name, value in ranges.items() if value is not None})
    if chosen.get("by"):
        selected = selected.filter(AUTHOR_OF[chosen["by"]])
    if chosen.get("about"):
        selected = selected.filter(ABOUT_OF[chosen["about"]])
    return selected


OUTCOMES = {
    "won": ("won", "true"),
    "lost": ("won", "false"),
    "survived": ("survived", "true"),
    "eliminated": ("survived", "false"),
}
"""The column of a `LabelledGame` and its value for each outcome of a seat."""
AUTHOR_OF = {
    "people": Q(judgment__author__isnull=False),
    "model": Q(judgment__judge__isnull=False),
    "rule": ~Q(judgment__rule=""),
    "import": ~Q(judgment__outside_author=""),
}
ABOUT_OF = {
    "game": Q(turn=None, seat=None),
    "seat": Q(turn=None, seat__isnull=False),
    "turn": Q(turn__isnull=False, start=None, other_turn=None),
    "span": Q(start__isnull=False),
    "pair": Q(other_turn__isnull=False),
}


def _of_game(column: str, output: Any) -> Coalesce:
    """A column of the label's `LabelledGame`, whichever kind of game it is."""
    return Coalesce(*(f"judgment__{kind}__labelled_game__{column}" for kind in KINDS), output_field=output)


LABELLED_GAME = _of_game("pk", IntegerField())
"""The key of the label's `LabelledGame`."""


class _Entry(Func):
    """The entry of a JSON list at an index, as text; NULL where there is none."""

    template, arg_joiner, output_field = "(%(expressions)s)", " ->> ", CharField()


def _entry(column: str, index: Combinable) -> _Entry:
    lists = LabelledGame._meta.get_field(column)
    return _Entry(_of_game(column, lists), Cast(index, IntegerField()))


def _has_value(value: str) -> Q:
    """Yes, no and numbers match as such; any other word matches an option or an entry of a text."""
    match value.casefold():
        case "yes":
            return Q(value=True)
        case "no":
            return Q(value=False)
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        return Q(value=value) | Q(value__contains=[value]) | Q(text__icontains=value)
    return Q(value=number)


def _says(words: str) -> Q:
    """What was said in the game, or written with the label, contains the words.

    Which kinds of games contain them is read at once, and labels with words have an index (`label_with_words`): a
    search that finds nothing looks at no other label.
    """
    query = SearchQuery(words, config="simple", search_type="websearch")
    games = LabelledGame.objects.filter(words=query)  # read by its index once, not for every label
    written = Label.objects.filter(~Q(reason="") | ~Q(text=""), Q(reason__icontains=words) | Q(text__icontains=words))
    said = Q(pk__in=written.order_by().values("pk"))
    for kind in KINDS:
        of_kind = games.exclude(**{kind: None})
        if of_kind.exists():
            said |= Q(**{f"judgment__{kind}__in": of_kind.values(kind)})
    return said


def offered_labels(user: User) -> list[tuple[str, str]]:
    """Return the label types to choose from, `codebook/name` with titles: those of each codebook's newest version."""
    codebooks = Codebook.objects.visible_to(user).with_newest().order_by("name")
    return [
        (f"{codebook.name}/{label['name']}", f"{version.title}: {label['title']}")
        for codebook in codebooks
        for version in [codebook.newest()]
        for label in version.labels
    ]
