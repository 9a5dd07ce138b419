"""The site as an ASGI application: pages over HTTP, the table over WebSockets."""

import gc
import os

from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
pages = get_asgi_application()

import webapp.urls  # noqa: E402, F401  (with all views, which the first request would load)
from webapp.accounts.uploads import may_upload  # noqa: E402
from webapp.core.bodies import BoundedBody  # noqa: E402
from webapp.core.sockets import guarded  # noqa: E402  (needs the apps, which the line above loads)

application = ProtocolTypeRouter({"http": BoundedBody(pages, may_upload), "websocket": guarded()})

gc.collect()
gc.freeze()  # what is loaded stays: a garbage collection in a request would look at all of it for a tenth of a second
