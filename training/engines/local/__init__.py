"""Engines that sample in this process: vLLM and Transformers, with what only they need."""
