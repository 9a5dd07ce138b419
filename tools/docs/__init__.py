"""The documentation: pages of `docs/` and others beside them, a reference made from the code, one site of static files.

`python -m tools.docs` builds it in `build/docs`, where the site finds it.
"""
