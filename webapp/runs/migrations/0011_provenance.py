from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("runs", "0010_report_pages")]

    operations = [migrations.RenameField("PinnedNumber", "card", "provenance")]
