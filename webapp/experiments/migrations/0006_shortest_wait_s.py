from django.db import migrations


class Migration(migrations.Migration):
    """The shortest wait of an experiment's participants is called so."""

    dependencies = [("experiments", "0005_shortest_wait")]

    operations = [migrations.RenameField("experiment", "hold_seconds", "shortest_wait_s")]
