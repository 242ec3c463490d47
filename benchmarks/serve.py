"""How a peer's process answers ``measure.Worker``.

It needs nothing but Python's own library, and speaks the Python of an old Caffe's interpreter.
"""

import json
import resource
import sys
import time


def serve(iterate):
    """Run ``iterate`` twice and answer that it is ready; then run it as often as each line of input says.

    Each answer is a line of JSON: ``{"ready": true}``, then ``{"ms": [...], "peak_mb": ...}``.
    """
    for _ in range(2):
        iterate()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = time.perf_counter()
            iterate()
            times.append(1e3 * (time.perf_counter() - start))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"ms": times, "peak_mb": peak}), flush=True)
