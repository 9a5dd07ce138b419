import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('arena', '0001_initial'),
        ('runs', '0001_initial'),
        ('serving', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='JudgeModel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=120, unique=True)),
                ('temperature', models.FloatField(default=0)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('remote', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='judges', to='serving.remotemodel')),
            ],
        ),
        migrations.CreateModel(
            name='Rubric',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.SlugField(max_length=80, unique=True)),
                ('title', models.CharField(max_length=200)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('owner', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='rubrics', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='RubricVersion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('title', models.CharField(max_length=200)),
                ('dimensions', models.JSONField(help_text='[{name, title, low, high, question, anchors: [{value, text}]}]')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('created_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('rubric', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='judgments.rubric')),
            ],
        ),
        migrations.CreateModel(
            name='Queue',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=120)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('annotators', models.ManyToManyField(blank=True, related_name='annotation_queues', to=settings.AUTH_USER_MODEL)),
                ('judge', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='queues', to='judgments.judgemodel')),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='queues', to=settings.AUTH_USER_MODEL)),
                ('rubric_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='queues', to='judgments.rubricversion')),
            ],
        ),
        migrations.CreateModel(
            name='Target',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('seat', models.PositiveSmallIntegerField()),
                ('position', models.PositiveIntegerField()),
                ('state', models.CharField(choices=[('pending', 'Pending'), ('scored', 'Scored'), ('unscored', 'could not be scored')], default='pending', max_length=8)),
                ('claimed_until', models.DateTimeField(blank=True, null=True)),
                ('episode', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='targets', to='runs.playedepisode')),
                ('match', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='targets', to='arena.match')),
                ('queue', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='targets', to='judgments.queue')),
            ],
        ),
        migrations.CreateModel(
            name='Judgment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('seat', models.PositiveSmallIntegerField()),
                ('prompt_sha256', models.CharField(blank=True, max_length=64)),
                ('values', models.JSONField(blank=True, null=True)),
                ('reasons', models.JSONField(default=dict, help_text="A judge model's sentence for each dimension.")),
                ('reason', models.TextField(blank=True, help_text="Why it could not be scored, or a person's comment.")),
                ('cost', models.JSONField(default=dict, help_text='Calls and tokens of the judge model.')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('author', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='judgments', to=settings.AUTH_USER_MODEL)),
                ('author_seat', models.ForeignKey(blank=True, help_text='The seat from which somebody rated after the game.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='judgments', to='arena.matchseat')),
                ('episode', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='judgments', to='runs.playedepisode')),
                ('judge', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='judgments', to='judgments.judgemodel')),
                ('match', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='judgments', to='arena.match')),
                ('rubric_version', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='judgments', to='judgments.rubricversion')),
                ('target', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='judgments', to='judgments.target')),
            ],
        ),
        migrations.CreateModel(
            name='Guess',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('person', models.BooleanField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('about', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='guessed', to='arena.matchseat')),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='guesses', to='arena.matchseat')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('by', 'about'), name='guess_once')],
            },
        ),
        migrations.AddConstraint(
            model_name='rubricversion',
            constraint=models.UniqueConstraint(fields=('rubric', 'number'), name='rubric_number_once'),
        ),
        migrations.AddIndex(
            model_name='target',
            index=models.Index(fields=['state', 'claimed_until'], name='judgments_t_state_9f5941_idx'),
        ),
        migrations.AddConstraint(
            model_name='target',
            constraint=models.UniqueConstraint(fields=('queue', 'position'), name='target_position_once'),
        ),
        migrations.AddConstraint(
            model_name='target',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('episode__isnull', True), ('match__isnull', False)), models.Q(('episode__isnull', False), ('match__isnull', True)), _connector='OR'), name='target_is_match_or_episode'),
        ),
        migrations.AddConstraint(
            model_name='judgment',
            constraint=models.UniqueConstraint(fields=('target', 'author'), name='one_judgment_a_person_and_target'),
        ),
        migrations.AddConstraint(
            model_name='judgment',
            constraint=models.UniqueConstraint(fields=('author_seat', 'seat', 'rubric_version'), name='one_rating_a_seat'),
        ),
    ]
