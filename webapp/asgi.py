"""The site as an ASGI application: pages over HTTP, the table over WebSockets."""

import os

from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
pages = get_asgi_application()

from webapp.accounts.uploads import may_upload  # noqa: E402
from webapp.core.bodies import BoundedBody  # noqa: E402
from webapp.core.sockets import guarded  # noqa: E402  (needs the apps, which the line above loads)

application = ProtocolTypeRouter({"http": BoundedBody(pages, may_upload), "websocket": guarded()})
