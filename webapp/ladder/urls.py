"""Addresses of the ladder."""

from django.urls import path

from webapp.ladder import views

app_name = "ladder"
urlpatterns = [path("", views.ladder, name="ladder")]
