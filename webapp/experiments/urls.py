"""Addresses of the experiments."""

from django.urls import path

from webapp.experiments.views import arms, experiments, facilitator, participant, questions

app_name = "experiments"
urlpatterns = [
    path("", experiments.experiment_list, name="list"),
    path("new/", experiments.new, name="new"),
    path("power/", experiments.power_of, name="power"),
    path("<int:pk>/", experiments.detail, name="detail"),
    path("<int:pk>/edit/", experiments.edit, name="edit"),
    path("<int:pk>/open/", experiments.open_experiment, name="open"),
    path("<int:pk>/pause/", experiments.pause, name="pause"),
    path("<int:pk>/resume/", experiments.resume, name="resume"),
    path("<int:pk>/close/", experiments.close, name="close"),
    path("<int:pk>/copy/", experiments.copy, name="copy"),
    path("<int:pk>/delete/", experiments.delete, name="delete"),
    path("<int:pk>/arms/new/", arms.new_arm, name="arm-new"),
    path("<int:pk>/arms/<int:arm_id>/", arms.edit_arm, name="arm"),
    path("<int:pk>/arms/<int:arm_id>/delete/", arms.delete_arm, name="arm-delete"),
    path("<int:pk>/questions/new/", questions.new_question, name="question-new"),
    path("<int:pk>/questions/<int:question_id>/", questions.edit_question, name="question"),
    path("<int:pk>/questions/<int:question_id>/delete/", questions.delete_question, name="question-delete"),
    path("<int:pk>/questions/<int:question_id>/up/", questions.move_question, name="question-up"),
    path("<int:pk>/monitor/", facilitator.monitor, name="monitor"),
    path("<int:pk>/participants/<int:participant_id>/nudge/", facilitator.nudge, name="nudge"),
    path("<int:pk>/participants/<int:participant_id>/replace/", facilitator.replace, name="replace"),
    path("<int:pk>/results/", facilitator.results_page, name="results"),
    path("<int:pk>/export.<str:form>", facilitator.export_file, name="export"),
    path("take/<str:token>/", participant.participate, name="participate"),
    path("take/<str:token>/begin/", participant.begin, name="begin"),
    path("take/<str:token>/answer/", participant.answer, name="answer"),
    path("take/<str:token>/heartbeat/", participant.heartbeat, name="heartbeat"),
    path("take/<str:token>/finish/", participant.finish, name="finish"),
    path("take/<str:token>/withdraw/", participant.withdraw, name="withdraw"),
]
