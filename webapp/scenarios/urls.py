"""Addresses of the scenarios app."""

from django.urls import URLPattern

app_name = "scenarios"
urlpatterns: list[URLPattern] = []
