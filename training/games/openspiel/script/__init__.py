"""The scripted players of boards, poker and Hanabi."""
