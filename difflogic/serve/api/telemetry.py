"""Count requests, jobs and workers for Prometheus."""

import shutil
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from difflogic.serve.store.jobs import ENDED, STATUSES
from difflogic.serve.store.store import Store

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5)
"""Upper bounds of the latency histogram's buckets, in seconds."""


class Telemetry(Collector):
    """Metrics of the server; numbers of jobs and workers are read from the store each time metrics are requested."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.registry = registry = CollectorRegistry()
        labels = ("method", "route")
        self.requests = Counter("difflogic_requests", "Requests answered.", (*labels, "status"), registry=registry)
        self.seconds = Histogram(
            "difflogic_request_seconds", "Seconds until an answer begins.", labels, buckets=SECONDS, registry=registry
        )
        self.streams = Gauge("difflogic_event_streams", "Clients that listen to events.", registry=registry)
        self.epochs = Counter("difflogic_epochs", "Epochs trained while this server ran.", registry=registry)
        self.refused = Counter("difflogic_refused_tokens", "Wrong tokens.", registry=registry)
        self.connections = Gauge("difflogic_connections", "Connections that are open.", registry=registry)
        late = "Connections ended by the server, as the client was late."
        self.turned_away = Counter("difflogic_connections_ended", late, registry=registry)
        over = "Jobs that ended while this server ran."
        self.ended = Counter("difflogic_jobs_ended", over, ("status",), registry=registry)
        for status in ENDED:  # begins at 0, so that Prometheus sees the first failure as an increase
            self.ended.labels(status)
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        # Prometheus requests these values about four times a minute.
        counts = self._store.counts()
        jobs = GaugeMetricFamily("difflogic_jobs", "Jobs by status.", labels=["status"])
        for status in STATUSES:
            jobs.add_metric([status], counts.get(status, 0))
        yield jobs
        yield GaugeMetricFamily(
            "difflogic_queue_age_seconds", "Seconds since the oldest waiting job was submitted; 0 if none waits.",
            self._store.queue_age(),
        )  # fmt: skip
        disk = shutil.disk_usage(self._store.folder)
        about = "Bytes of the file system that has the store."
        for name, size in (("free", disk.free), ("size", disk.total)):
            yield GaugeMetricFamily(f"difflogic_disk_{name}_bytes", about, size)
        labels, about = ["worker", "device"], "Epochs, or steps, per second of a worker's job."
        rates = GaugeMetricFamily("difflogic_worker_progress_per_second", about, labels=labels)
        memory = GaugeMetricFamily("difflogic_worker_memory_bytes", "Memory of a worker's process.", labels=labels)
        for worker in self._store.workers():
            rates.add_metric([worker.name, worker.device], worker.progress_per_s or 0.0)
            if worker.memory is not None:
                memory.add_metric([worker.name, worker.device], worker.memory)
        yield from (rates, memory)
