"""The sign-in pages that are used of allauth's; the names are the ones it looks up itself."""

from allauth.account import views
from django.urls import path

from webapp.accounts.permissions import members

urlpatterns = [
    path("login/", views.login, name="account_login"),
    path("logout/", views.logout, name="account_logout"),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("signup/", views.signup, name="account_signup"),
    path("reauthenticate/", views.reauthenticate, name="account_reauthenticate"),
    path("password/change/", members(views.password_change), name="account_change_password"),
]
