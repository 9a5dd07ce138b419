"""Pages of codebooks and judge models."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.contrib import messages
from django.forms import BaseFormSet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.text import slugify
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training.errors import BadInput
from webapp.accounts.permissions import admins, annotators, current_user, get_or_404, researchers
from webapp.core.http import accepted
from webapp.judgments.codebooks import services as codebooks
from webapp.judgments.codebooks.forms import (
    CodebookForm,
    JudgeForm,
    LabelTypeForm,
    label_type_set,
    label_types_of,
    mark_error,
    with_another,
)
from webapp.judgments.models import Codebook, CodebookVersion, JudgeModel


@require_GET
@annotators
def codebook_page(request: HttpRequest, name: str, number: int) -> HttpResponse:
    version = get_or_404(CodebookVersion.objects.select_related("codebook"), codebook__name=name, number=number)
    context = {
        "version": version,
        "record": version.record(),
        "versions": version.codebook.versions.order_by("-number").defer("labels", "guideline"),
        "may_change": codebooks.may_change_codebook(version.codebook, current_user(request)),
    }
    return render(request, "judgments/codebook.html", context)


@require_http_methods(["GET", "POST"])
@researchers
def codebook_edit(request: HttpRequest, name: str) -> HttpResponseBase:
    """The next version of a codebook; of somebody else's, a copy under another name."""
    user = current_user(request)
    codebook = get_or_404(Codebook.objects.with_newest(), name=name)
    may_change = codebooks.may_change_codebook(codebook, user)
    newest = codebook.newest()
    title = newest.title if may_change else f"{newest.title} (copy)"
    form = CodebookForm(request.POST or None, initial={"title": title, "guideline": newest.guideline})
    formset = label_type_set(newest, request.POST or None)
    if "add" in request.POST:
        return _with_another(request, newest, {"codebook": codebook, "own": may_change})
    if request.method == "POST" and form.is_valid() and formset.is_valid():
        target = name if may_change else _new_name(form)
        if target and (version := _save(request, target, form, formset)):
            return redirect("judgments:codebook", version.codebook.name, version.number)
    context = {"form": form, "formset": formset, "codebook": codebook, "own": may_change}
    return render(request, "judgments/codebook_edit.html", context, status=400 if request.method == "POST" else 200)


@require_http_methods(["GET", "POST"])
@researchers
def codebook_new(request: HttpRequest) -> HttpResponseBase:
    form = CodebookForm(request.POST or None)
    formset = label_type_set(None, request.POST or None)
    if "add" in request.POST:
        return _with_another(request, None, {"own": True})
    if request.method == "POST" and form.is_valid() and formset.is_valid():
        name = _new_name(form)
        if name and (version := _save(request, name, form, formset)):
            return redirect("judgments:codebook", version.codebook.name, version.number)
    context = {"form": form, "formset": formset, "own": True}
    return render(request, "judgments/codebook_edit.html", context, status=400 if request.method == "POST" else 200)


def _with_another(request: HttpRequest, newest: CodebookVersion | None, context: dict[str, Any]) -> HttpResponse:
    """The form as it was sent, with one more label; nothing is checked before it is saved."""
    form, formset = CodebookForm(request.POST), label_type_set(newest, with_another(request.POST))
    for each in (form, *formset.forms):
        each.errors.clear()
    formset.non_form_errors().clear()
    formset.forms[-1].fields["name"].widget.attrs["autofocus"] = True
    return render(request, "judgments/codebook_edit.html", {**context, "form": form, "formset": formset})


def _new_name(form: CodebookForm) -> str:
    """Return a new codebook's name, derived from its title; empty, with an error on the title, if it gives none."""
    name = slugify(form.cleaned_data["title"].replace("_", " "))[:80]
    if not name[:1].isalpha():
        form.add_error("title", "Begin the title with a Latin letter: the codebook's name is made of it.")
        return ""
    if Codebook.objects.filter(name=name).exists():
        form.add_error("title", "A codebook has this name already; choose another title.")
        return ""
    return name


def _save(
    request: HttpRequest, name: str, form: CodebookForm, formset: BaseFormSet[LabelTypeForm]
) -> CodebookVersion | None:
    labels = label_types_of(formset)
    try:
        version = codebooks.save_codebook(name=name, labels=labels, by=current_user(request), **form.cleaned_data)
    except BadInput as error:
        mark_error(form, formset, error)
        return None
    messages.success(request, f"Saved as {version}; earlier judgments keep their version.")
    return version


@require_http_methods(["GET", "POST"])
@admins
def judge_new(request: HttpRequest) -> HttpResponseBase:
    form = JudgeForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            judge = codebooks.add_judge(**form.cleaned_data)
        except BadInput as error:
            form.add_error("name", error.why)
        else:
            messages.success(request, f"{judge} was added.")
            return redirect("judgments:list")
    return render(request, "judgments/judge_new.html", {"form": form}, status=400 if form.errors else 200)


@require_POST
@admins
def judge_delete(request: HttpRequest, pk: int) -> HttpResponseBase:
    judge = get_or_404(JudgeModel.objects.all(), pk=pk)
    if accepted(request, partial(codebooks.remove_judge, judge=judge)):
        messages.success(request, f"{judge} was deleted.")
    return redirect("judgments:list")
