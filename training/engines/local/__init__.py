"""Engines that sample in this process (vLLM and Transformers), and their parts."""
