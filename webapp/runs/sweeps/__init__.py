"""Sweeps: many runs of one configuration that differ in chosen fields, launched and judged together."""
