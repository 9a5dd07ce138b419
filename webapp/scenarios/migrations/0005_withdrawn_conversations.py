from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):

    dependencies = [("scenarios", "0004_withdrawals")]

    operations = [
        migrations.AddIndex(
            "StoredConversation",
            models.Index(fields=["id"], condition=Q(withdrawn_at__isnull=False), name="conversation_withdrawn"),
        ),
    ]
