from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models import Exists, OuterRef

from webapp.accounts.names import skeleton


def keep_the_oldest(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Accounts that look like an older one stay, without a skeleton."""
    User = apps.get_model('accounts', 'User')
    older = User.objects.filter(skeleton=OuterRef('skeleton'), pk__lt=OuterRef('pk'))
    User.objects.filter(Exists(older)).update(skeleton=None)


def fill(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    User = apps.get_model('accounts', 'User')
    for user in User.objects.filter(skeleton=None).only('username').iterator():
        User.objects.filter(pk=user.pk).update(skeleton=skeleton(user.username))


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0002_user_skeleton'),
    ]

    operations = [
        migrations.AlterField(
            model_name='user',
            name='skeleton',
            field=models.CharField(db_index=True, default=None, editable=False, max_length=300, null=True),
        ),
        migrations.RunPython(keep_the_oldest, fill),
        migrations.AlterField(
            model_name='user',
            name='skeleton',
            field=models.CharField(default=None, editable=False, max_length=300, null=True, unique=True),
        ),
    ]
