"""Past one process: the section of a configuration, shapes of models, what fits where, and the start of Ray.

Importing it imports neither torch nor Ray.
"""
