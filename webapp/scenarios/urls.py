"""Addresses of the datasets."""

from django.urls import path

from webapp.scenarios import views

app_name = "scenarios"
urlpatterns = [
    path("", views.dataset_list, name="list"),
    path("import/", views.upload, name="upload"),
    path("imports/<int:pk>/", views.import_page, name="import"),
    path("imports/<int:pk>/store/", views.import_store, name="import-store"),
    path("imports/<int:pk>/drop/", views.import_drop, name="import-drop"),
    path("<slug:name>/", views.newest, name="newest"),
    path("<slug:name>/delete/", views.delete, name="delete"),
    path("<slug:name>/v<int:number>/", views.version_page, name="version"),
    path("<slug:name>/v<int:number>/export.jsonl", views.export, name="export"),
    path("<slug:name>/v<int:number>/fork/", views.fork, name="fork"),
    path("<slug:name>/v<int:number>/scenarios/<path:key>/edit/", views.scenario_edit, name="edit"),
    path("<slug:name>/v<int:number>/scenarios/<path:key>/withdraw/", views.withdraw, name="withdraw"),
    path("<slug:name>/v<int:number>/scenarios/<path:key>/", views.scenario_page, name="scenario"),
]
