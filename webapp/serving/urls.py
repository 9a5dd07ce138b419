"""Addresses of the serving app."""

from django.urls import URLPattern

app_name = "serving"
urlpatterns: list[URLPattern] = []
