"""Addresses of the judgments."""

from django.urls import path

from webapp.judgments import display
from webapp.judgments.annotating import settings as annotator_settings
from webapp.judgments.annotating import views as annotating
from webapp.judgments.codebooks import views as codebooks
from webapp.judgments.queues import annotator_views, managing
from webapp.judgments.queues import views as queues
from webapp.judgments.rating import views as rating
from webapp.judgments.results import adjudication
from webapp.judgments.results import curve_views as curves
from webapp.judgments.results import views as results
from webapp.judgments.search import views as search
from webapp.judgments.suggesting import views as suggesting

app_name = "judgments"
urlpatterns = [
    path("", queues.queue_list, name="list"),
    path("queues/new/", queues.queue_new, name="queue-new"),
    path("queues/<int:pk>/", queues.queue_page, name="queue"),
    path("queues/<int:pk>/retry/", queues.queue_retry, name="queue-retry"),
    path("queues/<int:pk>/cancel/", queues.queue_cancel, name="queue-cancel"),
    path("queues/<int:pk>/delete/", queues.queue_delete, name="queue-delete"),
    path("queues/<int:pk>/export/", queues.queue_export, name="queue-export"),
    path("queues/<int:pk>/agreement/", results.agreement, name="agreement"),
    path("queues/<int:pk>/truth/", results.truth, name="truth"),
    path("queues/<int:pk>/judges/", results.judges, name="judges"),
    path("queues/<int:pk>/judges/export/", results.export_disagreements, name="export-disagreements"),
    path("queues/<int:pk>/decisions/", adjudication.decision_list, name="decisions"),
    path("queues/<int:pk>/decisions/<int:target_id>/", adjudication.decide, name="decide"),
    path("queues/<int:pk>/decisions/<int:target_id>/gold/", adjudication.gold, name="gold"),
    path("queues/<int:pk>/labels/", queues.queue_labels, name="queue-labels"),
    path("queues/<int:pk>/state/", managing.queue_state, name="queue-state"),
    path("queues/<int:pk>/games/", managing.queue_games, name="queue-games"),
    path("queues/<int:pk>/annotators/", managing.queue_annotators, name="queue-annotators"),
    path("queues/<int:pk>/annotators/<int:user_id>/", managing.queue_annotator, name="queue-annotator"),
    path("queues/<int:pk>/invitations/", managing.queue_invite, name="queue-invite"),
    path("queues/<int:pk>/invitations/<int:invitation_id>/revoke/", managing.queue_uninvite, name="queue-uninvite"),
    path("queues/<int:pk>/unskip/", annotator_views.queue_unskip, name="queue-unskip"),
    path("queues/<int:pk>/leave/", annotator_views.queue_leave, name="queue-leave"),
    path("queues/<int:pk>/gold/<int:target_id>/", annotator_views.gold_answer, name="gold-answer"),
    path("mine/", annotator_views.own_queues, name="own_queues"),
    path("invitations/<str:token>/", annotator_views.invitation, name="invitation"),
    path("queues/<int:pk>/annotate/", annotating.annotate, name="annotate"),
    path("annotating/", annotator_settings.settings_page, name="annotator-settings"),
    path("queues/<int:pk>/own/", display.own_judgments, name="own_judgments"),
    path("queues/<int:pk>/suggestions/", suggesting.suggestions, name="suggestions"),
    path("queues/<int:pk>/suggest/", suggesting.suggest, name="suggest"),
    path("queues/<int:pk>/suggestions/delete/", suggesting.suggestions_delete, name="suggestions-delete"),
    path("classifiers/", suggesting.classifier_list, name="classifiers"),
    path("classifiers/new/", suggesting.classifier_new, name="classifier-new"),
    path("classifiers/<slug:name>/", suggesting.classifier_page, name="classifier"),
    path("classifiers/<slug:name>/retry/", suggesting.classifier_retry, name="classifier-retry"),
    path("classifiers/<slug:name>/delete/", suggesting.classifier_delete, name="classifier-delete"),
    path("codebooks/new/", codebooks.codebook_new, name="codebook-new"),
    path("codebooks/<slug:name>/v<int:number>/", codebooks.codebook_page, name="codebook"),
    path("codebooks/<slug:name>/edit/", codebooks.codebook_edit, name="codebook-edit"),
    path("judges/new/", codebooks.judge_new, name="judge-new"),
    path("judges/<int:pk>/delete/", codebooks.judge_delete, name="judge-delete"),
    path("matches/<int:pk>/", display.of_match, name="of-match"),
    path("datasets/<slug:name>/v<int:number>/", display.of_version, name="of-version"),
    path("runs/<int:run_id>/", curves.of_run, name="of-run"),
    path("runs/<int:run_id>/suggested/", curves.suggested_of_run, name="suggested-of-run"),
    path("search/", search.search, name="search"),
    path("search/labels.csv", search.search_file, name="search-file"),
    path("search/save/", search.save, name="save-search"),
    path("search/saved/<int:pk>/delete/", search.forget, name="forget-search"),
    path("rate/<int:pk>/", rating.rate, name="rate"),
]
