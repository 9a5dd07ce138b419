"""The judgments app: rubrics, judgments and exports."""
