"""Serving a checkpoint: the process, its configuration, and the server for machines without vLLM."""
