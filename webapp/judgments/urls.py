"""Addresses of the judgments."""

from django.urls import path

from webapp.judgments import annotating, codebook_views, display, rating, views

app_name = "judgments"
urlpatterns = [
    path("", views.queue_list, name="list"),
    path("queues/new/", views.queue_new, name="queue-new"),
    path("queues/<int:pk>/", views.queue_page, name="queue"),
    path("queues/<int:pk>/retry/", views.queue_retry, name="queue-retry"),
    path("queues/<int:pk>/cancel/", views.queue_cancel, name="queue-cancel"),
    path("queues/<int:pk>/delete/", views.queue_delete, name="queue-delete"),
    path("queues/<int:pk>/export/", views.queue_export, name="queue-export"),
    path("queues/<int:pk>/annotate/", annotating.annotate, name="annotate"),
    path("queues/<int:pk>/own/", display.own_judgments, name="own_judgments"),
    path("codebooks/new/", codebook_views.codebook_new, name="codebook-new"),
    path("codebooks/<slug:name>/v<int:number>/", codebook_views.codebook_page, name="codebook"),
    path("codebooks/<slug:name>/edit/", codebook_views.codebook_edit, name="codebook-edit"),
    path("judges/new/", codebook_views.judge_new, name="judge-new"),
    path("judges/<int:pk>/delete/", codebook_views.judge_delete, name="judge-delete"),
    path("matches/<int:pk>/", display.of_match, name="of-match"),
    path("datasets/<slug:name>/v<int:number>/", display.of_version, name="of-version"),
    path("rate/<int:pk>/", rating.rate, name="rate"),
]
