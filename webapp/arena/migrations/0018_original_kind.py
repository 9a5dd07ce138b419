from django.db import migrations


class Migration(migrations.Migration):
    """The kind of a seat's player before a stand-in took over is called its original kind."""

    dependencies = [("arena", "0017_countdown_names")]

    operations = [migrations.RenameField("matchseat", "began_as", "original_kind")]
