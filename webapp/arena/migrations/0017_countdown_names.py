from django.db import migrations


class Migration(migrations.Migration):
    """The fields of a countdown are called after it."""

    dependencies = [("arena", "0016_stand_in_began_as")]

    operations = [
        migrations.RenameField("match", "fill_after_s", "countdown_s"),
        migrations.RenameField("match", "fill_at", "countdown_ends_at"),
        migrations.RenameField("match", "fill_model", "countdown_model"),
    ]
