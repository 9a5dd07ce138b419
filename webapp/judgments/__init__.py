"""The judgments app: codebooks, judgments and exports."""
