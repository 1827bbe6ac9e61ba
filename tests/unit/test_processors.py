import os

from clipup.processors import available_threads


def test_the_affinity_of_the_process_counts(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    assert available_threads() == 3


def test_a_system_without_affinity_counts_its_processors(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert available_threads() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_threads() == 1
