"""Alerts: messages by email or webhook when a run ends, stops making progress, or triggers its watchdog."""
