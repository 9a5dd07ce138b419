from django.conf import settings
from django.db import migrations, models
import django.db.models.deletion


class Migration(migrations.Migration):

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('serving', '0001_initial'),
    ]

    operations = [
        migrations.RenameField(model_name='deployment', old_name='wanted_at', new_name='requested_at'),
        migrations.AddField(
            model_name='deployment',
            name='requested_by',
            field=models.ForeignKey(blank=True, help_text='Who asked for it on the page of deployments; empty where a table did.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
    ]
