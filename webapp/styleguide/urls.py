"""Addresses of the style guide, which `webapp.urls` includes in debug mode."""

from django.urls import path

from webapp.styleguide import views

app_name = "styleguide"
urlpatterns = [
    path("", views.components, name="components"),
    path("tables/", views.tables, name="tables"),
    path("tables/<str:game>/<int:sample>/", views.table, name="table"),
]
