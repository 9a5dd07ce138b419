from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [("judgments", "0015_target_state_in_queue")]

    operations = [migrations.AlterModelOptions("target", {"ordering": ["queue", "position"]})]
