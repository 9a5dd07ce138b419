"""Addresses of the arena app."""

from django.urls import URLPattern

app_name = "arena"
urlpatterns: list[URLPattern] = []
