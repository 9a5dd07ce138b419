"""Logs the event files beside this file to Weights & Biases, one W&B run per file.

    pip install wandb tensorboard
    python to_wandb.py

It is written beside every exported event file: W&B reads event files only while a W&B run of its own writes them. W&B's
environment variables apply, such as WANDB_PROJECT, WANDB_NAME and WANDB_MODE=offline.
"""

import os
from pathlib import Path

import wandb
from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

folder = Path(__file__).resolve().parent
project = os.environ.get("WANDB_PROJECT", "parley")
name = os.environ.get("WANDB_NAME", folder.name)
for path in sorted(folder.glob("events.out.tfevents.*")):
    with wandb.init(project=project, name=name) as run:
        for event in LegacyEventFileLoader(str(path)).Load():
            values = {value.tag: value.simple_value for value in event.summary.value}
            if values:  # the file begins with an event that has its version alone
                run.log({**values, "_timestamp": event.wall_time}, step=event.step)
