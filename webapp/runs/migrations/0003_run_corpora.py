import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('corpora', '0001_initial'),
        ('runs', '0002_suite_runs'),
    ]

    operations = [
        migrations.CreateModel(
            name='RunCorpus',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('corpus', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, to='corpora.corpus')),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='runs.run')),
            ],
            options={
                'verbose_name': 'run',
            },
        ),
        migrations.AddField(
            model_name='run',
            name='corpora',
            field=models.ManyToManyField(help_text='Corpora of the site that its seats search.', related_name='runs', through='runs.RunCorpus', to='corpora.corpus'),
        ),
        migrations.AddConstraint(
            model_name='runcorpus',
            constraint=models.UniqueConstraint(fields=('run', 'corpus'), name='run_corpus_once'),
        ),
    ]
