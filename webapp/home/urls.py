"""Addresses of the first page."""

from django.urls import path

from webapp.home import guided, search, views

app_name = "home"
urlpatterns = [
    path("", views.index, name="index"),
    path("running/", views.running, name="running"),
    path("samples/store/", views.store_samples, name="store-samples"),
    path("samples/remove/", views.remove_samples, name="remove-samples"),
    path("tour/", guided.tour, name="tour"),
    path("tour/hide/", guided.hide, name="hide"),
    path("tour/<str:step>/", guided.begin, name="begin"),
    path("search/", search.search_page, name="search"),
    path("search/palette/", search.palette, name="palette"),
]
