"""The account page (API keys) and, for administrators, the list of people, their roles and their passwords."""

from functools import partial

from django.contrib import messages
from django.contrib.auth.forms import SetPasswordForm
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training.errors import BadInput
from webapp.accounts import services
from webapp.accounts.forms import KeyForm, PersonForm
from webapp.accounts.models import ApiKey, Role, User
from webapp.accounts.permissions import admins, current_user, get_or_404, members, researchers
from webapp.core.http import accepted, integer, render_page
from webapp.core.sorting import Order

PAGE = 50
SORTS = {"name": "username", "joined": "-date_joined", "seen": "-last_login", "role": "role"}
TITLES = {"name": "Name", "joined": "Joined", "seen": "Last signed in", "role": "Role"}


@require_POST
@researchers
def confirm_email(request: HttpRequest) -> HttpResponse:
    """Send a link by which this person confirms their email address."""
    user = current_user(request)
    if accepted(request, partial(services.send_confirmation, user=user, request=request)):
        messages.success(request, f"A link was sent to {user.email}. Open it to confirm the address.")
    return redirect("runs:alerts")


@require_http_methods(["GET", "POST"])
@members
def account(request: HttpRequest) -> HttpResponse:
    """The user's role and API keys; a POST creates a key, which is shown once."""
    user = current_user(request)
    form = KeyForm(request.POST or None)
    token = ""
    if request.method == "POST" and form.is_valid():
        try:
            _, token = services.create_key(user=user, name=form.cleaned_data["name"])
        except BadInput as error:
            form.add_error(None, error.why)
        else:
            form = KeyForm()
    keys = user.api_keys.live().order_by("-created_at")
    status = 400 if form.errors else 200
    return render(request, "accounts/account.html", {"form": form, "keys": keys, "token": token}, status=status)


@require_POST
@members
def revoke(request: HttpRequest, key_id: int) -> HttpResponse:
    """Revoke one of your own keys."""
    services.revoke_key(key=get_or_404(ApiKey.objects.filter(user=current_user(request)), pk=key_id))
    messages.success(request, "The key is revoked. Programs that used it are refused from now on.")
    return redirect("accounts:account")


@require_GET
@admins
def people(request: HttpRequest) -> HttpResponse:
    """All people with a password, filtered by the query string, with their roles and status."""
    words, role, order = request.GET.get("q", "")[:200], request.GET.get("role", ""), Order.requested(request, "name")
    members = User.objects.members()
    if words:
        members = members.filter(Q(username__icontains=words) | Q(email__icontains=words))
    if role:
        members = members.filter(role=role)
    page = Paginator(order.apply(members, SORTS, "name"), PAGE).get_page(integer(request, "page", 1, low=1))
    forms = [PersonForm(initial={"role": person.role, "active": person.is_active}) for person in page]
    context = {
        "page": page,
        "rows": list(zip(page, forms, strict=True)),
        "words": words,
        "role": role,
        "roles": [(choice.value, choice.label) for choice in Role if choice is not Role.GUEST],
        "order": order,
        "columns": order.columns(TITLES, SORTS),
    }
    return render_page(request, "accounts/people.html", context, "results")


@require_POST
@admins
def change_person(request: HttpRequest, user_id: int) -> HttpResponse:
    """Set a person's role; administrators cannot change their own."""
    person = get_or_404(User.objects.members(), pk=user_id)
    form = PersonForm(request.POST)
    if not form.is_valid():
        messages.error(request, f"{person.username} was not changed: {form.errors.as_text()}")
    elif person.pk == request.user.pk:
        messages.error(request, "You cannot change your own role. Ask another administrator.")
    else:
        role, active = Role(form.cleaned_data["role"]), form.cleaned_data["active"]
        if accepted(request, partial(services.set_role, user=person, role=role, active=active)):
            messages.success(request, f"{person.username} is now {role}.")
    back = QueryDict(request.POST.get("back", "")[:500]).urlencode()
    return redirect(f"{reverse('accounts:people')}?{back}" if back else "accounts:people")


@require_http_methods(["GET", "POST"])
@admins
def new_password(request: HttpRequest, user_id: int) -> HttpResponse:
    """Set a new password for another user; users change their own on a page that asks for the old one."""
    person = get_or_404(User.objects.members(), pk=user_id)
    if person.pk == request.user.pk:
        return redirect("account_change_password")
    form = SetPasswordForm(person, request.POST or None)
    if request.method == "POST" and form.is_valid():
        services.set_password(user=person, password=form.cleaned_data["new_password1"])
        messages.success(request, f"{person.username} has a new password and is signed out everywhere.")
        return redirect("accounts:people")
    status = 400 if request.method == "POST" else 200
    return render(request, "accounts/new_password.html", {"form": form, "person": person}, status=status)
