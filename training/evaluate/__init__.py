"""How good a model is: the arena, social metrics, behaviours, ratings, the distance from an equilibrium, intervals."""
