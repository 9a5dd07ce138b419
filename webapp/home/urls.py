"""Addresses of the first page."""

from django.urls import path

from webapp.home import views

app_name = "home"
urlpatterns = [
    path("", views.index, name="index"),
    path("running/", views.running, name="running"),
    path("watch/", views.watch, name="watch"),
]
