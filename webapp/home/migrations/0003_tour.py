"""The record of the guided tour is called Tour."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL), ("home", "0002_sample")]

    operations = [
        migrations.RenameModel("Circle", "Tour"),
        migrations.AlterField(
            "tour",
            "user",
            models.OneToOneField(
                on_delete=django.db.models.deletion.CASCADE, related_name="tour", to=settings.AUTH_USER_MODEL
            ),
        ),
    ]
