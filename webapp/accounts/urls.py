"""Addresses of the accounts app: sign-in, and the pages of our own."""

from django.urls import include, path

urlpatterns = [
    path("", include("webapp.accounts.account_urls")),
    path("", include("webapp.accounts.own_urls")),
]
