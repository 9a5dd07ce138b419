"""Addresses of the experiments."""

from django.urls import path

from webapp.experiments.views import taking

app_name = "experiments"
urlpatterns = [
    path("take/<str:token>/", taking.take, name="take"),
    path("take/<str:token>/begin/", taking.begin, name="begin"),
    path("take/<str:token>/answer/", taking.answer, name="answer"),
    path("take/<str:token>/beat/", taking.beat, name="beat"),
    path("take/<str:token>/finish/", taking.finish, name="finish"),
    path("take/<str:token>/withdraw/", taking.withdraw, name="withdraw"),
]
