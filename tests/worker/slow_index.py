"""`python -m training` whose indexing stands still after it has reported the phase `words`."""

import sys
import time

from training.cli import index, main

write = index._Reporter.write


def stand_still(report, status):
    write(report, status)
    if status["phase"] == "words":
        time.sleep(60)


index._Reporter.write = stand_still
sys.exit(main())
