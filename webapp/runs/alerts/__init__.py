"""Alerts: people are told by mail or webhook when a run ends, falls silent, or makes its watchdog speak."""
