"""Addresses of the first page."""

from django.urls import path

from webapp.home import search, views

app_name = "home"
urlpatterns = [
    path("", views.index, name="index"),
    path("running/", views.running, name="running"),
    path("watch/", views.watch, name="watch"),
    path("search/", search.search_page, name="search"),
    path("search/palette/", search.palette, name="palette"),
]
