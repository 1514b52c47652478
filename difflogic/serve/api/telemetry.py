"""What the server counts, in the text form that Prometheus reads."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from difflogic.serve.store.jobs import ENDED, STATUSES
from difflogic.serve.store.store import Store

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5)
"""The upper limits of the classes of latency, in seconds."""


class Telemetry:
    """The server's counters; what jobs and workers do is read from the store when it is asked for."""

    def __init__(self, store: Store) -> None:
        self.registry = CollectorRegistry()
        labels = ("method", "route", "status")
        self.requests = Counter("difflogic_requests", "Requests answered.", labels, registry=self.registry)
        self.seconds = Histogram(
            "difflogic_request_seconds", "Seconds until an answer begins.", ("method", "route"),
            buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self.streams = Gauge("difflogic_event_streams", "Clients that listen to events.", registry=self.registry)
        self.epochs = Counter("difflogic_epochs", "Epochs trained while this server ran.", registry=self.registry)
        self.refused = Counter("difflogic_refused_tokens", "Wrong tokens.", registry=self.registry)
        self.connections = Gauge("difflogic_connections", "Connections that are open.", registry=self.registry)
        self.turned_away = Counter(
            "difflogic_connections_ended", "Connections ended by the server, as the client was late.",
            registry=self.registry,
        )  # fmt: skip
        self.ended = Counter("difflogic_jobs_ended", "Jobs that ended while this server ran.", ("status",),
                             registry=self.registry)  # fmt: skip
        for status in ENDED:  # from the beginning there, so that the first failure is a change
            self.ended.labels(status)
        self.registry.register(_OfStore(store))

    def text(self) -> bytes:
        """All counters, as Prometheus reads them."""
        return generate_latest(self.registry)


class _OfStore(Collector):
    def __init__(self, store: Store) -> None:
        self._store = store

    def describe(self) -> list[Metric]:
        """Describe nothing in advance: collecting reads the store."""
        return []

    def collect(self) -> Iterator[Metric]:
        # Read when Prometheus asks, every quarter of a minute or so, and not kept up to date in between.
        counts = self._store.counts()
        jobs = GaugeMetricFamily("difflogic_jobs", "Jobs by status.", labels=["status"])
        for status in STATUSES:
            jobs.add_metric([status], counts.get(status, 0))
        yield jobs
        yield GaugeMetricFamily(
            "difflogic_queue_age_seconds", "Since the oldest job that waits was submitted; 0 where none does.",
            self._store.queue_age(),
        )  # fmt: skip
        disk = shutil.disk_usage(self._store.folder)
        for name, size in (("free", disk.free), ("size", disk.total)):
            yield GaugeMetricFamily(f"difflogic_disk_{name}_bytes", "Of the file system that has the store.", size)
        rates = GaugeMetricFamily(
            "difflogic_worker_progress_per_second", "Of a worker's job.", labels=["worker", "device"]
        )
        memory = GaugeMetricFamily(
            "difflogic_worker_memory_bytes", "Of a worker's process.", labels=["worker", "device"]
        )
        for worker in self._store.workers():
            rates.add_metric([worker.name, worker.device], worker.progress_per_s or 0.0)
            if worker.memory is not None:
                memory.add_metric([worker.name, worker.device], worker.memory)
        yield from (rates, memory)
