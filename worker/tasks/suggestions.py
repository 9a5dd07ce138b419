"""The tasks that fill a queue with suggestions, and train a classifier."""

from celery import shared_task
from django.db import close_old_connections

from webapp.core.queue import SUGGEST, TRAIN_CLASSIFIER
from worker import labelling


@shared_task(name=SUGGEST.name)
def suggest(pk: int) -> None:
    """Ask the source about every target of its queue unless another worker does."""
    try:
        labelling.suggest(pk)
    finally:
        close_old_connections()


@shared_task(name=TRAIN_CLASSIFIER.name)
def train_classifier(pk: int) -> None:
    """Train the classifier in a process unless another worker does, and supervise the process until it ends."""
    try:
        labelling.train(pk)
    finally:
        close_old_connections()
