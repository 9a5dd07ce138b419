"""Past one process: the section of a configuration, shapes of models, and what fits where. No torch, no Ray."""
