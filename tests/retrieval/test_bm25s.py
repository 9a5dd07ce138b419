"""bm25s is imported without numba, which vLLM cannot stand in its process."""

import subprocess
import sys

CODE = """
import sys
from training.retrieval.base import bm25s
module = bm25s()
scorer = module.BM25(method="lucene")
scorer.index([["otter", "holds"], ["badger", "digs"]], show_progress=False)
assert scorer.get_scores(["badger"]).argmax() == 1
assert "llvmlite" not in sys.modules and "numba" not in sys.modules
assert bm25s() is module
import numba
assert numba.__version__
"""


def test_bm25s_loads_no_numba_and_leaves_it_to_others():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
