"""Self-play training of language models in conversation games; knows nothing of the site."""
