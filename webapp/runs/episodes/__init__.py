"""A recorded episode as pages show it: transcript, replay, beliefs."""
