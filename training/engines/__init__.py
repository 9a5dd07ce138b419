"""Sampling: vLLM, Transformers and scripted engines on tokens; ChatModel on messages."""
