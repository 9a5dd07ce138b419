"""Addresses of the judgments app."""

from django.urls import URLPattern

app_name = "judgments"
urlpatterns: list[URLPattern] = []
