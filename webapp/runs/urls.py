"""Addresses of runs and checkpoints."""

from django.urls import path

from webapp.runs.alerts import views as alerts
from webapp.runs.organising import views as organising
from webapp.runs.preferences import views as preferences
from webapp.runs.registry import views as registry
from webapp.runs.report_pages import views as report_pages
from webapp.runs.sweeps import views as sweeps
from webapp.runs.views import (
    by_role,
    calibration,
    checkpoints,
    csv_files,
    episodes,
    league,
    lists,
    new,
    provision,
    run,
    suite,
)

app_name = "runs"
urlpatterns = [
    path("runs/", lists.run_list, name="list"),
    path("runs/new/", new.new, name="new"),
    path("runs/several/", lists.bulk, name="bulk"),
    path("runs/compare/", lists.compare, name="compare"),
    path("runs/compare/comparison.csv", csv_files.comparison, name="comparison-csv"),
    path("runs/curves.csv", csv_files.curves, name="curves-csv"),
    path("runs/sweeps/", sweeps.sweep_list, name="sweeps"),
    path("runs/sweeps/new/", sweeps.new, name="new-sweep"),
    path("runs/sweeps/<int:sweep_id>/", sweeps.sweep, name="sweep"),
    path("runs/sweeps/<int:sweep_id>/act/", sweeps.act, name="act-on-sweep"),
    path("runs/alerts/", alerts.alerts, name="alerts"),
    path("runs/alerts/<int:rule_id>/", alerts.act, name="act-on-alert"),
    path("runs/reports/", report_pages.report_list, name="reports"),
    path("runs/reports/new/", report_pages.new, name="new-report"),
    path("runs/reports/preview/", report_pages.preview, name="preview-report"),
    path("runs/reports/<int:report_id>/", report_pages.report, name="report"),
    path("runs/reports/<int:report_id>/edit/", report_pages.edit, name="edit-report"),
    path("runs/reports/<int:report_id>/act/", report_pages.act, name="act-on-report"),
    path("runs/columns/", organising.choose, name="columns"),
    path("runs/runs.csv", csv_files.run_list, name="list-csv"),
    path("runs/charts/", preferences.charts, name="charts"),
    path("runs/<int:run_id>/", run.detail, name="detail"),
    path("runs/<int:run_id>/live/", run.live, name="live"),
    path("runs/<int:run_id>/metrics.json", run.metrics, name="metrics"),
    path("runs/<int:run_id>/tensorboard.zip", run.event_files, name="event-files"),
    path("runs/<int:run_id>/conversations/", episodes.conversations, name="conversations"),
    path("runs/<int:run_id>/conversations/<int:step>/<int:number>/", episodes.conversation, name="conversation"),
    path("runs/<int:run_id>/conversations/<int:step>/<int:number>/replay/", episodes.replay, name="replay"),
    path("runs/<int:run_id>/conversations/<int:step>/<int:number>/tokens/", episodes.tokens, name="tokens"),
    path("runs/<int:run_id>/evaluation/", run.evaluation, name="evaluation"),
    path("runs/<int:run_id>/by-role/", by_role.by_role, name="by-role"),
    path("runs/<int:run_id>/league/", league.league, name="league"),
    path("runs/<int:run_id>/league/games/", league.games, name="league-games"),
    path("runs/<int:run_id>/calibration/", calibration.calibration, name="calibration"),
    path("runs/<int:run_id>/calibration/questions.zip", calibration.rows, name="calibration-rows"),
    path("runs/<int:run_id>/log/", run.log, name="log"),
    path("runs/<int:run_id>/configuration/", run.configuration, name="configuration"),
    path("runs/<int:run_id>/lineage/", run.ancestry, name="lineage"),
    path("runs/<int:run_id>/about/", organising.about, name="about"),
    path("runs/<int:run_id>/archive/", organising.archive, name="archive"),
    path("runs/<int:run_id>/pin/", organising.pin, name="pin"),
    path("runs/<int:run_id>/stop/", run.stop, name="stop"),
    path("runs/<int:run_id>/resume/", run.resume, name="resume"),
    path("runs/<int:run_id>/delete/", run.delete, name="delete"),
    path("provision/", provision.provision, name="provision"),
    path("checkpoints/", checkpoints.checkpoint_list, name="checkpoints"),
    path("checkpoints/matrix/", registry.matrix, name="matrix"),
    path("checkpoints/<int:checkpoint_id>/aliases/", registry.add, name="add-alias"),
    path("checkpoints/<int:checkpoint_id>/aliases/remove/", registry.remove, name="remove-alias"),
    path("checkpoints/add/", checkpoints.add_base, name="add-base"),
    path("checkpoints/<int:checkpoint_id>/", checkpoints.checkpoint, name="checkpoint"),
    path("checkpoints/<int:checkpoint_id>/suite/", suite.new, name="suite"),
    path("checkpoints/<int:checkpoint_id>/download.zip", checkpoints.download, name="download"),
    path("checkpoints/<int:checkpoint_id>/open/", checkpoints.share, name="share"),
    path("checkpoints/<int:checkpoint_id>/delete/", checkpoints.delete, name="delete-checkpoint"),
]
