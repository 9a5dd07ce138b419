"""Addresses of the corpora."""

from django.urls import path

from webapp.corpora import views

app_name = "corpora"
urlpatterns = [
    path("", views.corpus_list, name="list"),
    path("upload/", views.upload, name="upload"),
    path("<slug:name>/", views.corpus_page, name="corpus"),
    path("<slug:name>/search/<slug:kind>/", views.results, name="results"),
    path("<slug:name>/indexes/<slug:kind>/build/", views.build, name="build"),
    path("<slug:name>/indexes/<slug:kind>/stop/", views.stop, name="stop"),
    path("<slug:name>/share/", views.share, name="share"),
    path("<slug:name>/delete/", views.delete, name="delete"),
    path("<slug:name>/export.jsonl", views.export, name="export"),
]
