import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('scenarios', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Attempt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('fence', models.PositiveBigIntegerField()),
                ('state', models.CharField(choices=[('claimed', 'Claimed'), ('running', 'Running'), ('ended', 'Ended'), ('lapsed', 'Lapsed')], default='claimed', max_length=8)),
                ('start_step', models.PositiveIntegerField(default=0)),
                ('worker', models.CharField(blank=True, max_length=200)),
                ('host', models.CharField(blank=True, max_length=200)),
                ('pid', models.PositiveIntegerField(blank=True, null=True)),
                ('pid_started', models.FloatField(blank=True, help_text="The process's start time, against reused ids.", null=True)),
                ('lease_until', models.DateTimeField()),
                ('phase', models.CharField(blank=True, max_length=40)),
                ('status', models.JSONField(default=dict)),
                ('progressed_at', models.DateTimeField(blank=True, help_text="The process's own last sign of progress.", null=True)),
                ('offsets', models.JSONField(default=dict, help_text='Bytes already read of each tailed file.')),
                ('log', models.TextField(blank=True, help_text='The end of what the process printed.')),
                ('exit_code', models.IntegerField(blank=True, null=True)),
                ('started_at', models.DateTimeField(auto_now_add=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name='Checkpoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200, unique=True)),
                ('kind', models.CharField(choices=[('base', 'base model'), ('full', 'full weights'), ('adapter', 'LoRA adapter')], max_length=7)),
                ('step', models.PositiveIntegerField(default=0)),
                ('base', models.CharField(max_length=200)),
                ('path', models.CharField(help_text="Name in the default storage, or a base model's folder.", max_length=400)),
                ('sha256', models.CharField(blank=True, help_text='Of its manifest.', max_length=64)),
                ('metrics', models.JSONField(default=dict)),
                ('open_to_players', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('parent', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='children', to='runs.checkpoint')),
            ],
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('train', 'self-play training'), ('sft', 'cold start'), ('eval', 'evaluation'), ('serve', 'served model')], max_length=5)),
                ('name', models.CharField(max_length=120)),
                ('state', models.CharField(choices=[('queued', 'Queued'), ('starting', 'Starting'), ('running', 'Running'), ('stopping', 'Stopping'), ('succeeded', 'Succeeded'), ('stopped', 'Stopped'), ('failed', 'Failed')], default='queued', max_length=9)),
                ('queue', models.CharField(max_length=20)),
                ('config', models.JSONField(help_text='The resolved RunConfig.')),
                ('method', models.CharField(blank=True, max_length=40)),
                ('game', models.CharField(blank=True, max_length=40)),
                ('base', models.CharField(blank=True, help_text="Base model's name in the registry.", max_length=200)),
                ('step', models.PositiveIntegerField(default=0)),
                ('steps', models.PositiveIntegerField(default=0, help_text='Planned number of training steps.')),
                ('key_metric', models.FloatField(blank=True, null=True)),
                ('sparkline', models.JSONField(default=list, help_text='Up to 60 values of the key metric.')),
                ('result', models.JSONField(blank=True, help_text="An evaluation's result.", null=True)),
                ('error', models.TextField(blank=True)),
                ('code_version', models.CharField(blank=True, max_length=80)),
                ('directory', models.CharField(blank=True, max_length=400)),
                ('stop_asked_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('cloned_from', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='clones', to='runs.run')),
                ('dataset_version', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='runs', to='scenarios.datasetversion')),
                ('opponent_checkpoint', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='runs_against_it', to='runs.checkpoint')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runs', to=settings.AUTH_USER_MODEL)),
                ('start_checkpoint', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='runs_started_here', to='runs.checkpoint')),
            ],
        ),
        migrations.CreateModel(
            name='PlayedEpisode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('step', models.PositiveIntegerField()),
                ('number', models.PositiveIntegerField()),
                ('fence', models.PositiveBigIntegerField()),
                ('file', models.CharField(help_text='Name in the default storage.', max_length=400)),
                ('offset', models.PositiveBigIntegerField()),
                ('length', models.PositiveIntegerField()),
                ('outcome', models.CharField(blank=True, max_length=40)),
                ('summary', models.JSONField(default=dict)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='episodes', to='runs.run')),
            ],
        ),
        migrations.CreateModel(
            name='Metric',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('step', models.PositiveIntegerField()),
                ('fence', models.PositiveBigIntegerField()),
                ('at', models.DateTimeField()),
                ('values', models.JSONField()),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='metrics', to='runs.run')),
            ],
        ),
        migrations.CreateModel(
            name='Event',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('kind', models.CharField(max_length=40)),
                ('data', models.JSONField(default=dict)),
                ('attempt', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='runs.attempt')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='events', to='runs.run')),
            ],
        ),
        migrations.AddField(
            model_name='checkpoint',
            name='run',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='checkpoints', to='runs.run'),
        ),
        migrations.AddField(
            model_name='attempt',
            name='run',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='attempts', to='runs.run'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['state'], name='runs_run_state_1f5aa2_idx'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['-created_at'], name='runs_run_created_79307a_idx'),
        ),
        migrations.AddConstraint(
            model_name='playedepisode',
            constraint=models.UniqueConstraint(fields=('run', 'step', 'number'), name='episode_number_once'),
        ),
        migrations.AddConstraint(
            model_name='metric',
            constraint=models.UniqueConstraint(fields=('run', 'step'), name='metric_step_once'),
        ),
        migrations.AddIndex(
            model_name='attempt',
            index=models.Index(fields=['state', 'lease_until'], name='runs_attemp_state_390a25_idx'),
        ),
        migrations.AddConstraint(
            model_name='attempt',
            constraint=models.UniqueConstraint(fields=('run', 'number'), name='attempt_number_once'),
        ),
        migrations.AddConstraint(
            model_name='attempt',
            constraint=models.UniqueConstraint(fields=('run', 'fence'), name='attempt_fence_once'),
        ),
    ]
