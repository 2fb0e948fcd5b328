"""One thread of torch a process: on a busy machine two can be forty times slower, waiting for each other."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
