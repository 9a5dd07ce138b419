"""Addresses of the experiments."""

from django.urls import path

from webapp.experiments.views import facilitator, parts, studies, taking

app_name = "experiments"
urlpatterns = [
    path("", studies.experiment_list, name="list"),
    path("new/", studies.new, name="new"),
    path("power/", studies.power_of, name="power"),
    path("<int:pk>/", studies.detail, name="detail"),
    path("<int:pk>/edit/", studies.edit, name="edit"),
    path("<int:pk>/open/", studies.open_experiment, name="open"),
    path("<int:pk>/pause/", studies.pause, name="pause"),
    path("<int:pk>/resume/", studies.resume, name="resume"),
    path("<int:pk>/close/", studies.close, name="close"),
    path("<int:pk>/copy/", studies.copy, name="copy"),
    path("<int:pk>/delete/", studies.delete, name="delete"),
    path("<int:pk>/arms/new/", parts.new_arm, name="arm-new"),
    path("<int:pk>/arms/<int:arm_id>/", parts.edit_arm, name="arm"),
    path("<int:pk>/arms/<int:arm_id>/delete/", parts.delete_arm, name="arm-delete"),
    path("<int:pk>/questions/new/", parts.new_question, name="question-new"),
    path("<int:pk>/questions/<int:question_id>/", parts.edit_question, name="question"),
    path("<int:pk>/questions/<int:question_id>/delete/", parts.delete_question, name="question-delete"),
    path("<int:pk>/questions/<int:question_id>/up/", parts.move_question, name="question-up"),
    path("<int:pk>/monitor/", facilitator.monitor, name="monitor"),
    path("<int:pk>/participants/<int:participant_id>/nudge/", facilitator.nudge, name="nudge"),
    path("<int:pk>/participants/<int:participant_id>/replace/", facilitator.replace, name="replace"),
    path("<int:pk>/results/", facilitator.results_page, name="results"),
    path("<int:pk>/export.<str:form>", facilitator.export_file, name="export"),
    path("take/<str:token>/", taking.take, name="take"),
    path("take/<str:token>/begin/", taking.begin, name="begin"),
    path("take/<str:token>/answer/", taking.answer, name="answer"),
    path("take/<str:token>/beat/", taking.beat, name="beat"),
    path("take/<str:token>/finish/", taking.finish, name="finish"),
    path("take/<str:token>/withdraw/", taking.withdraw, name="withdraw"),
]
