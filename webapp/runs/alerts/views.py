"""Alerts of a person: rules, a test of each, and what was sent."""

from __future__ import annotations

from functools import partial

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from training.errors import BadInput
from webapp.accounts.permissions import current_user, get_or_404, researchers
from webapp.core.http import accepted, integer
from webapp.runs.alerts import services
from webapp.runs.alerts.channels import CHANNELS, verified
from webapp.runs.alerts.models import EVENTS, AlertRule, Delivery
from webapp.runs.models import Run

LOG = 50


class RuleForm(forms.Form):
    """A new rule."""

    events = forms.MultipleChoiceField(choices=list(EVENTS.items()), widget=forms.CheckboxSelectMultiple, label="When")
    channel = forms.ChoiceField(choices=[(name, channel.label) for name, channel in CHANNELS.items()], label="By")
    address = forms.CharField(
        max_length=500,
        required=False,
        help_text=" ".join(channel.help for channel in CHANNELS.values() if channel.help),
    )


@require_http_methods(["GET", "POST"])
@researchers
def alerts(request: HttpRequest) -> HttpResponse:
    """The rules of this person with a form for another one; `?run=` makes it one of that run alone."""
    user = current_user(request)
    number = integer(request, "run", 0)
    run = get_or_404(Run.objects.visible_to(user).without_servers(), pk=number) if number else None
    form = RuleForm(request.POST or None, initial={"events": ["succeeded", "failed", "watchdog"]})
    if request.method == "POST" and form.is_valid():
        try:
            services.add_rule(user=user, run=run, **form.cleaned_data)
        except BadInput as error:
            form.add_error(error.where if error.where in form.fields else None, error.why)
        else:
            messages.success(request, "The alert is set. Send a test to see whether it arrives.")
            return redirect("runs:alerts")
    sent = list(Delivery.objects.filter(rule__user=user).select_related("rule__user").order_by("-pk")[:LOG])
    keys = {delivery.body.get("run") for delivery in sent} - {None}
    existing = set(Run.objects.visible_to(user).filter(pk__in=keys).values_list("pk", flat=True))
    unconfirmed = settings.MAIL_READY and bool(user.email) and not verified(user)
    rules = user.alert_rules.select_related("run", "user").order_by("-pk")
    context = {
        "form": form,
        "run": run,
        "rules": rules,
        "sent": sent,
        "existing": existing,
        "unconfirmed": unconfirmed,
        "unreachable": not settings.MAIL_READY and not settings.WEBHOOK_ADDRESSES,
    }
    return render(request, "runs/alerts.html", context, status=400 if form.errors else 200)


@require_POST
@researchers
def act(request: HttpRequest, rule_id: int) -> HttpResponse:
    """Test or (`action=remove`) remove a rule of this person."""
    rule = get_or_404(AlertRule.objects.filter(user=current_user(request)), pk=rule_id)
    if request.POST.get("action") == "remove":
        rule.delete()
        messages.success(request, "The alert is removed.")
    elif accepted(request, partial(services.test, rule=rule)):
        messages.success(request, "A test is on its way; the log below says whether it arrived.")
    return redirect("runs:alerts")
