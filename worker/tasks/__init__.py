"""The tasks, one module for each kind of work; `worker.app` imports them all."""
