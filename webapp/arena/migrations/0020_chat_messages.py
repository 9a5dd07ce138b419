import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """What spectators write are messages of a chat."""

    dependencies = [
        ("arena", "0019_countdown_alias"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RenameModel("WatcherLine", "ChatMessage"),
        migrations.RenameModel("WatcherMute", "ChatMute"),
        migrations.RenameIndex("chatmessage", old_name="watcher_line_match", new_name="chat_message_match"),
        migrations.RenameIndex("chatmessage", old_name="watcher_line_author", new_name="chat_message_author"),
        migrations.AlterField(
            model_name="chatmessage",
            name="author",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="chat_messages",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AlterField(
            model_name="chatmessage",
            name="match",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="chat_messages", to="arena.match"
            ),
        ),
        migrations.AlterField(
            model_name="chatmute",
            name="match",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="chat_mutes", to="arena.match"
            ),
        ),
    ]
