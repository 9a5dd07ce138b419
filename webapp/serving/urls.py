"""Addresses of the deployments."""

from django.urls import path

from webapp.serving import views

app_name = "serving"
urlpatterns = [
    path("", views.deployments, name="list"),
    path("checkpoints/<int:checkpoint_id>/serve/", views.serve, name="serve"),
    path("<int:deployment_id>/stop/", views.stop, name="stop"),
    path("remote/", views.add_remote, name="add-remote"),
    path("remote/<int:remote_id>/remove/", views.remove_remote, name="remove-remote"),
]
