from django.db import migrations


class Migration(migrations.Migration):
    """What brings a browser back to the participation that it began is called its resume token."""

    dependencies = [("experiments", "0007_code_removed")]

    operations = [migrations.RenameField("participant", "ticket_hash", "resume_token_hash")]
