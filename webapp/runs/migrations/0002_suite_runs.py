from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0001_initial'),
    ]

    operations = [
        migrations.AlterField(
            model_name='run',
            name='kind',
            field=models.CharField(choices=[('train', 'self-play training'), ('sft', 'cold start'), ('eval', 'evaluation'), ('suite', 'evaluation suite'), ('serve', 'served model')], max_length=5),
        ),
    ]
