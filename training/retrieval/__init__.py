"""Search in a corpus of passages: by words (BM25) or by meaning (dense vectors).

`index.build` makes an index of a corpus file once and stores it; `index.open_index` returns a `base.Retriever` of it.
"""
