"""How good a model is: the head-to-head, social metrics, behaviours, ratings, the distance from an equilibrium,
intervals.
"""
