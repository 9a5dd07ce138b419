"""The cold start: supervised fine-tuning on recorded conversations, by TRL."""
