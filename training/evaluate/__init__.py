"""How good a model is: arena of two models, social metrics, intervals."""
