"""Celery workers: they supervise training and serving processes and do short tasks. Nothing of torch is imported."""
