import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Dataset',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(max_length=80, unique=True)),
                ('title', models.CharField(blank=True, max_length=200)),
                ('source', models.CharField(blank=True, help_text='Where the data comes from.', max_length=400)),
                ('licence', models.CharField(blank=True, max_length=120)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='datasets', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='DatasetVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('note', models.CharField(blank=True, max_length=400)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('sha256', models.CharField(max_length=64)),
                ('scenario_count', models.PositiveIntegerField(default=0)),
                ('conversation_count', models.PositiveIntegerField(default=0)),
                ('games', models.JSONField(default=list, help_text='Names of the games its scenarios play.')),
                ('created_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('dataset', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='scenarios.dataset')),
            ],
            options={
                'ordering': ['number'],
            },
        ),
        migrations.AddField(
            model_name='dataset',
            name='forked_from',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='forks', to='scenarios.datasetversion'),
        ),
        migrations.CreateModel(
            name='Import',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('format', models.CharField(max_length=40)),
                ('dataset_name', models.SlugField(max_length=80)),
                ('source', models.CharField(blank=True, max_length=400)),
                ('licence', models.CharField(blank=True, max_length=120)),
                ('folder', models.CharField(help_text='Folder of its files in the default storage.', max_length=200)),
                ('files', models.JSONField(default=list, help_text='Names of the uploaded files.')),
                ('state', models.CharField(choices=[('uploading', 'Uploading'), ('queued', 'Queued'), ('reading', 'Reading'), ('waiting', 'waiting for confirmation'), ('storing', 'Storing'), ('refused', 'Refused'), ('stored', 'Stored'), ('dropped', 'Dropped')], default='queued', max_length=10)),
                ('progress', models.FloatField(default=0, help_text='0 to 1.')),
                ('report', models.JSONField(default=dict, help_text='{"scenarios", "conversations", "errors", "notices", "preview", "problem"}')),
                ('claimed_until', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='imports', to=settings.AUTH_USER_MODEL)),
                ('version', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='imports', to='scenarios.datasetversion')),
            ],
        ),
        migrations.CreateModel(
            name='StoredScenario',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveIntegerField()),
                ('key', models.CharField(help_text="The scenario's own id.", max_length=200)),
                ('game', models.CharField(max_length=40)),
                ('title', models.CharField(max_length=200)),
                ('data', models.JSONField()),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scenarios', to='scenarios.datasetversion')),
            ],
        ),
        migrations.CreateModel(
            name='StoredConversation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveIntegerField()),
                ('source', models.CharField(help_text='Record or match it came from.', max_length=200)),
                ('data', models.JSONField()),
                ('judgments', models.JSONField(default=list)),
                ('scenario', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='conversations', to='scenarios.storedscenario')),
            ],
        ),
        migrations.AddConstraint(
            model_name='datasetversion',
            constraint=models.UniqueConstraint(fields=('dataset', 'number'), name='version_number_once'),
        ),
        migrations.AddConstraint(
            model_name='storedscenario',
            constraint=models.UniqueConstraint(fields=('version', 'position'), name='scenario_position_once'),
        ),
        migrations.AddConstraint(
            model_name='storedscenario',
            constraint=models.UniqueConstraint(fields=('version', 'key'), name='scenario_key_once'),
        ),
        migrations.AddConstraint(
            model_name='storedconversation',
            constraint=models.UniqueConstraint(fields=('scenario', 'position'), name='conversation_position_once'),
        ),
    ]
