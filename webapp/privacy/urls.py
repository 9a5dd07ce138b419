"""Addresses of the privacy app."""

from django.urls import path

from webapp.privacy import views

app_name = "privacy"
urlpatterns = [
    path("data/", views.data, name="data"),
    path("delete/", views.delete, name="delete"),
    path("people/<int:user_id>/delete/", views.delete_person, name="delete-person"),
]
