"""Measurements: Parley beside raw vLLM and TRL, and a miniature that shows credit at work."""
