"""Addresses of the table."""

from django.urls import path

from webapp.arena import replays, views

app_name = "arena"
urlpatterns = [
    path("", views.lobby, name="lobby"),
    path("new/", views.new, name="new"),
    path("matches/", views.matches, name="matches"),
    path("guest/<str:token>/", views.guest, name="guest"),
    path("<int:match_id>/", views.table, name="table"),
    path("<int:match_id>/move/", views.move, name="move"),
    path("<int:match_id>/sit/", views.sit, name="sit"),
    path("<int:match_id>/leave/", views.leave, name="leave"),
    path("<int:match_id>/consent/", views.consent, name="consent"),
    path("<int:match_id>/invite/<int:number>/", views.invite, name="invite"),
    path("<int:match_id>/close/", views.close, name="close"),
    path("<int:match_id>/result/", replays.result, name="result"),
    path("<int:match_id>/replay/", replays.replay, name="replay"),
    path("<int:match_id>/again/", replays.again, name="again"),
]
