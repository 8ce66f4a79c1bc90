"""The worker of pottery, at its defaults.

What it is told and what it answers stands in ../src/process.rs. A task is a thread here.
"""

import json
import os
import platform
import sys
import threading
import time
from importlib.metadata import version

from pottery import Redlock
from redis import Redis


def now():
    """CLOCK_MONOTONIC in microseconds, as every worker reads it."""
    return time.monotonic_ns() // 1000


def sleep_until(moment):
    time.sleep(max(0, moment - now()) / 1e6)


class Worker:
    def __init__(self):
        self.masters = ()

    def obey(self, order):
        if order["op"] == "connect":
            return self.connect(order)
        return self.compete_all(order) if order["shared"] else self.repeat_all(order)

    def connect(self, order):
        self.masters = frozenset(Redis.from_url(url) for url in order["urls"])
        self.repeat_all({**order, "ms": order["warm_ms"], "at": now()})
        versions = [f"{name} {version(name)}" for name in ("pottery", "redis")]
        return {"ready": ", ".join([*versions, f"Python {platform.python_version()}"])}

    def repeat(self, prefix, end, micros, failures):
        """Takes and gives back fresh keys, once at least."""
        count = 0
        while count == 0 or now() < end:
            begin = now()
            try:
                lock = Redlock(key=f"{prefix}:{count}", masters=self.masters)
                if not lock.acquire():
                    raise TimeoutError
                lock.release()
            except Exception as error:  # whatever it is, the pair was not done
                failures.append(error)
            micros.append(now() - begin)
            count += 1

    def repeat_all(self, job):
        sleep_until(job["at"])
        begin, end = now(), job["at"] + job["ms"] * 1000
        micros, failures = [], []
        threads = [
            threading.Thread(
                target=self.repeat,
                args=(f"{job['key']}:{task}", end, micros, failures),
                daemon=True,
            )
            for task in range(job["tasks"])
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wall = now() - begin
        micros.sort()
        return {
            "p50": micros[round((len(micros) - 1) * 0.5)],
            "p99": micros[round((len(micros) - 1) * 0.99)],
            "pairs": len(micros),
            "failed": len(failures),
            "wall_us": wall,
        }

    def compete(self, task, job, end, holds, waiting, failures):
        """Takes the one key again and again; `waiting` has those who asked and have not got it."""
        lock = Redlock(key=job["key"], masters=self.masters)
        while now() < end:
            asked = waiting[task] = now()
            # It waits for as long as it takes: what comes after the end has no part in it.
            if not lock.acquire() or now() >= end:
                return
            got = now()
            waiting.pop(task)
            if job["section_us"]:
                time.sleep(job["section_us"] / 1e6)
            holds.append((task, asked, got, now()))
            try:
                lock.release()
            except Exception as error:
                failures.append(error)

    def compete_all(self, job):
        end = job["at"] + job["ms"] * 1000
        holds, waiting, failures = [], {}, []
        sleep_until(job["at"])
        for task in range(job["tasks"]):
            arguments = (task, job, end, holds, waiting, failures)
            threading.Thread(target=self.compete, args=arguments, daemon=True).start()
        # A little more, so that who holds it at the end can let go.
        sleep_until(end + 20_000)
        open_waits = [(task, asked, 0, 0) for task, asked in list(waiting.items())]
        return {"holds": list(holds) + open_waits, "failed": len(failures)}


def main():
    worker = Worker()
    for line in sys.stdin:
        try:
            answer = worker.obey(json.loads(line))
        except Exception as error:
            answer = {"error": repr(error)}
        print(json.dumps(answer), flush=True)
    # Threads that still wait for a lock shall not keep the process.
    os._exit(0)


main()
