"""Addresses of the home app."""

from django.urls import URLPattern

app_name = "home"
urlpatterns: list[URLPattern] = []
