"""The pages of allauth that this site uses; allauth looks them up by these names."""

from allauth.account import views
from django.urls import path
from django.views.decorators.http import require_http_methods

from webapp.accounts.permissions import members
from webapp.accounts.signup import SignUp

form = require_http_methods(["GET", "POST"])  # as they come, they take PUT, too
urlpatterns = [
    path("login/", form(views.login), name="account_login"),
    path("logout/", form(views.logout), name="account_logout"),
    path("confirm-email/<str:key>/", form(views.confirm_email), name="account_confirm_email"),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("signup/", form(SignUp.as_view()), name="account_signup"),
    path("reauthenticate/", form(views.reauthenticate), name="account_reauthenticate"),
    path("password/change/", form(members(views.password_change)), name="account_change_password"),
]
