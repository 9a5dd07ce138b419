import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('runs', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='RemoteModel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=120, unique=True)),
                ('address', models.URLField()),
                ('model', models.CharField(max_length=200)),
                ('secret_name', models.CharField(blank=True, max_length=120)),
                ('open_to_players', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('added_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Deployment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('cold', 'Cold'), ('starting', 'Starting'), ('ready', 'Ready'), ('stopping', 'Stopping'), ('failed', 'Failed')], default='cold', max_length=8)),
                ('address', models.CharField(blank=True, help_text='http://host:port/v1 while it is ready.', max_length=200)),
                ('key', models.CharField(blank=True, help_text='Random key of the local server; changes at every start.', max_length=64)),
                ('error', models.TextField(blank=True)),
                ('used_at', models.DateTimeField(blank=True, null=True)),
                ('wanted_at', models.DateTimeField(blank=True, help_text='Somebody is waiting for it since then.', null=True)),
                ('ready_at', models.DateTimeField(blank=True, null=True)),
                ('checkpoint', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='deployment', to='runs.checkpoint')),
                ('run', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='deployments', to='runs.run')),
                ('remote', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='deployment', to='serving.remotemodel')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('checkpoint__isnull', False), ('remote__isnull', True)), models.Q(('checkpoint__isnull', True), ('remote__isnull', False)), _connector='OR'), name='deployment_has_one_source')],
            },
        ),
    ]
