"""The socket routes of a table: one for the game, one for the chat of its watchers."""

from django.urls import path

from webapp.arena.live.consumers import TableConsumer
from webapp.arena.watching.consumers import WatchersConsumer
from webapp.core.sockets import register

register(path("ws/play/<int:match_id>/", TableConsumer.as_asgi(), name="table-socket"))
register(path("ws/watchers/<int:match_id>/", WatchersConsumer.as_asgi(), name="watchers-socket"))
