from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

from webapp.accounts.names import skeleton


def fill(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    User = apps.get_model('accounts', 'User')
    for user in User.objects.only('username').iterator():
        User.objects.filter(pk=user.pk).update(skeleton=skeleton(user.username))


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='user',
            name='skeleton',
            field=models.CharField(blank=True, db_index=True, default='', editable=False, max_length=300),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
