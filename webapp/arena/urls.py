"""Addresses of the table."""

from django.urls import path

from webapp.arena.pages import alone, analysis, embed, host_views, now, replays, views
from webapp.arena.watching import views as watching

app_name = "arena"
urlpatterns = [
    path("", views.lobby, name="lobby"),
    path("new/", views.new, name="new"),
    path("now/<str:game>/", now.play_now, name="play-now"),
    path("alone/", alone.begin, name="alone"),
    path("matches/", views.matches, name="matches"),
    path("guest/<str:token>/", views.guest, name="guest"),
    path("join/<str:token>/", views.join, name="join"),
    path("<int:match_id>/", views.table, name="table"),
    path("<int:match_id>/move/", views.move, name="move"),
    path("<int:match_id>/coach/", views.ask_coach, name="coach"),
    path("<int:match_id>/sit/", views.sit, name="sit"),
    path("<int:match_id>/leave/", views.leave, name="leave"),
    path("<int:match_id>/consent/", views.consent, name="consent"),
    path("<int:match_id>/invite/<int:number>/", views.invite, name="invite"),
    path("<int:match_id>/link/", views.open_link, name="link"),
    path("<int:match_id>/ready/", host_views.ready, name="ready"),
    path("<int:match_id>/fill/", host_views.fill, name="fill"),
    path("<int:match_id>/stop-countdown/", host_views.stop_countdown, name="stop-countdown"),
    path("<int:match_id>/pause/", host_views.pause, name="pause"),
    path("<int:match_id>/resume/", host_views.resume, name="resume"),
    path("<int:match_id>/replace/<int:number>/", host_views.replace, name="replace"),
    path("<int:match_id>/kick/<int:number>/", host_views.kick, name="kick"),
    path("<int:match_id>/return/", host_views.take_back, name="return"),
    path("<int:match_id>/close/", views.close, name="close"),
    path("<int:match_id>/watchers/write/", watching.write, name="watchers-write"),
    path("reports/", watching.reports, name="chat-reports"),
    path("<int:match_id>/watchers/<int:message_id>/report/", watching.report, name="watchers-report"),
    path("<int:match_id>/watchers/<int:message_id>/dismiss/", watching.dismiss, name="watchers-dismiss"),
    path("<int:match_id>/watchers/<int:message_id>/delete/", watching.delete, name="watchers-delete"),
    path("<int:match_id>/watchers/<int:message_id>/mute/", watching.mute, name="watchers-mute"),
    path("<int:match_id>/result/", replays.result, name="result"),
    path("<int:match_id>/replay/", replays.replay, name="replay"),
    path("<int:match_id>/analysis/", analysis.analysis, name="analysis"),
    path("<int:match_id>/embed/", embed.embed, name="embed"),
    path("<int:match_id>/picture.svg", embed.picture, name="picture"),
    path("<int:match_id>/animation.svg", embed.animation, name="animation"),
    path("<int:match_id>/beliefs/", replays.beliefs, name="beliefs"),
    path("<int:match_id>/accompany/", alone.accompany, name="accompany"),
    path("<int:match_id>/again/", replays.again, name="again"),
]
