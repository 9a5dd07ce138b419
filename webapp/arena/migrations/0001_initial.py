import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('scenarios', '0001_initial'),
        ('serving', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Match',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('game', models.CharField(max_length=40)),
                ('scenario', models.JSONField(help_text='The Scenario played.')),
                ('state', models.CharField(choices=[('open', 'waiting for players'), ('running', 'Running'), ('finished', 'Finished'), ('aborted', 'Aborted')], default='open', max_length=8)),
                ('visibility', models.CharField(choices=[('private', 'only who sits at it'), ('open', 'anyone signed in may watch'), ('public', 'listed with its replay')], default='private', max_length=7)),
                ('deadline_s', models.PositiveIntegerField(help_text='Seconds a seat has for a move.')),
                ('step', models.PositiveIntegerField(default=0, help_text='Completed steps of the game.')),
                ('returns', models.JSONField(default=dict)),
                ('metrics', models.JSONField(default=dict)),
                ('aborted_why', models.CharField(blank=True, max_length=400)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('host', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='hosted_matches', to=settings.AUTH_USER_MODEL)),
                ('source', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='matches', to='scenarios.storedscenario')),
                ('swapped_from', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='rematches', to='arena.match')),
            ],
        ),
        migrations.CreateModel(
            name='DueSeat',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('seat', models.PositiveSmallIntegerField()),
                ('step', models.PositiveIntegerField()),
                ('deadline', models.DateTimeField(blank=True, help_text='Empty while its model is waking up.', null=True)),
                ('claimed_until', models.DateTimeField(blank=True, null=True)),
                ('fence', models.PositiveIntegerField(default=0)),
                ('hint_at', models.DateTimeField(blank=True, db_index=True, help_text='When a worker is notified again; empty for people.', null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('match', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='due', to='arena.match')),
            ],
        ),
        migrations.CreateModel(
            name='MatchMove',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('step', models.PositiveIntegerField()),
                ('seat', models.PositiveSmallIntegerField()),
                ('move', models.JSONField()),
                ('private', models.TextField(blank=True, help_text="A model's reasoning; shown to nobody while the game runs.")),
                ('attempts', models.JSONField(default=list, help_text='Refused replies and failures before it: [{reply, error, after}].')),
                ('received_at', models.DateTimeField(auto_now_add=True)),
                ('match', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='moves', to='arena.match')),
            ],
        ),
        migrations.CreateModel(
            name='MatchSeat',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('seat', models.PositiveSmallIntegerField()),
                ('name', models.CharField(max_length=80)),
                ('kind', models.CharField(choices=[('person', 'Person'), ('model', 'Model'), ('scripted', 'Scripted'), ('open', 'Open')], max_length=8)),
                ('scripted', models.CharField(blank=True, max_length=40)),
                ('consent', models.BooleanField(blank=True, null=True)),
                ('consented_at', models.DateTimeField(blank=True, null=True)),
                ('deployment', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='match_seats', to='serving.deployment')),
                ('match', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='seats', to='arena.match')),
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='match_seats', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='GuestLink',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('token_hash', models.CharField(max_length=64, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('claimed_at', models.DateTimeField(blank=True, null=True)),
                ('seat', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='guest_link', to='arena.matchseat')),
            ],
        ),
        migrations.CreateModel(
            name='ViewerRow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('viewer', models.SmallIntegerField(help_text='A seat, or -1 spectator, -2 everything.')),
                ('number', models.PositiveIntegerField()),
                ('message', models.JSONField(help_text='A training.records.Message.')),
                ('step', models.PositiveIntegerField(default=0, help_text='Completed steps of the game when it was written.')),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('match', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='rows', to='arena.match')),
            ],
        ),
        migrations.AddIndex(
            model_name='match',
            index=models.Index(fields=['state', '-created_at'], name='arena_match_state_b1acb0_idx'),
        ),
        migrations.AddIndex(
            model_name='match',
            index=models.Index(fields=['visibility', '-created_at'], name='arena_match_visibil_0e7f8f_idx'),
        ),
        migrations.AddIndex(
            model_name='dueseat',
            index=models.Index(fields=['deadline'], name='arena_duese_deadlin_2b75ed_idx'),
        ),
        migrations.AddConstraint(
            model_name='dueseat',
            constraint=models.UniqueConstraint(fields=('match', 'seat'), name='due_once'),
        ),
        migrations.AddConstraint(
            model_name='matchmove',
            constraint=models.UniqueConstraint(fields=('match', 'step', 'seat'), name='move_once'),
        ),
        migrations.AddConstraint(
            model_name='matchmove',
            constraint=models.UniqueConstraint(fields=('match', 'number'), name='move_number_once'),
        ),
        migrations.AddConstraint(
            model_name='matchseat',
            constraint=models.UniqueConstraint(fields=('match', 'seat'), name='seat_once'),
        ),
        migrations.AddConstraint(
            model_name='matchseat',
            constraint=models.UniqueConstraint(fields=('match', 'user'), name='user_sits_once'),
        ),
        migrations.AddConstraint(
            model_name='viewerrow',
            constraint=models.UniqueConstraint(fields=('match', 'viewer', 'number'), name='viewer_number_once'),
        ),
    ]
