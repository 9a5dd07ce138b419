"""Helpers of the Makefile; no part of the program."""
