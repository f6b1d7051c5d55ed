#!/usr/bin/env python3
"""Reads /metrics of a running `medusa serve` with Prometheus' own parser.

    tools/dev/check_clients.sh installs it, starts a server and runs this
    tools/dev/clients/check_metrics.py http://127.0.0.1:8080
"""
import sys
import urllib.request

from prometheus_client.parser import text_string_to_metric_families


def main() -> None:
    base = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
    with urllib.request.urlopen(f"{base}/metrics") as reply:
        assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4"), reply.headers
        text = reply.read().decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert len(families) > 15, sorted(families)
    for name, family in families.items():
        assert family.type in ("counter", "gauge", "histogram") and family.documentation, name
        if family.type == "histogram":
            buckets = [s.value for s in family.samples if s.name.endswith("_bucket")]
            count = next(s.value for s in family.samples if s.name.endswith("_count"))
            assert buckets == sorted(buckets) and buckets[-1] == count, name
    print(f"{len(families)} metrics: " + ", ".join(sorted(families)))


if __name__ == "__main__":
    main()
