"""Experiments with people: arms, random assignment, questionnaires, waiting room, live monitor, results, export."""
