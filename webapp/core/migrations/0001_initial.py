import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Heartbeat',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('clock', 'Clock'), ('worker', 'Worker')], max_length=8)),
                ('name', models.CharField(max_length=200, unique=True)),
                ('beaten_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('detail', models.JSONField(default=dict)),
            ],
        ),
    ]
