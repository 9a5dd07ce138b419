"""Pictures of a replay as SVG files that stand alone: a position, or a game that plays by itself."""
