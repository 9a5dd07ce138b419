"""Alerts: messages by mail or webhook when a run ends, stops making progress, or triggers its watchdog."""
