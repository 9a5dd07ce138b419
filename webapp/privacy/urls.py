"""Addresses of the privacy app."""

from django.urls import path

from webapp.privacy import views

app_name = "privacy"
urlpatterns = [path("data/", views.data, name="data")]
