"""The table's socket route."""

from django.urls import path

from webapp.arena.live.consumers import TableConsumer
from webapp.core.sockets import register

register(path("ws/play/<int:match_id>/", TableConsumer.as_asgi(), name="table-socket"))
