"""`manage.py describe_api`: prints the OpenAPI document of the REST API, as `/api/v1/openapi.json` answers it."""

import json
from typing import Any

from django.core.management.base import BaseCommand

from webapp.api.urls import api


class Command(BaseCommand):
    """The command."""

    help = "Print the OpenAPI document of the REST API."

    def handle(self, *args: Any, **options: Any) -> None:
        """Print it as JSON."""
        self.stdout.write(json.dumps(api.get_openapi_schema(), indent=1))
