"""``python -m benchmarks [--quick] [--only ROW ...] [--image IMAGE] [--write FILE]``."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import embedded, exec, files, lifecycle, output, resources
from benchmarks.harness import Row, run
from benchmarks.report import Measured, machine, summary, table
from benchmarks.stage import FULL, QUICK, Stage

AREAS = (exec, output, files, lifecycle, resources, embedded)
RESULTS = Path(__file__).with_name("results.md")


def main(argv: Sequence[str] | None = None) -> int:
    options = _parse(argv)
    logging.disable(logging.WARNING)  # the libraries' own
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was made is removed then, too
    with Stage(options.image, QUICK if options.quick else FULL) as stage:
        rows = [row for area in AREAS for row in area.rows(stage)]
        if unknown := set(options.only) - {row.key for row in rows}:
            print(
                f"no row {', '.join(sorted(unknown))}; there are: {', '.join(row.key for row in rows)}", file=sys.stderr
            )
            return 2
        load, started = os.getloadavg()[0], time.monotonic()
        measured = [_measure(row) for row in rows if not options.only or row.key in options.only]
        minutes = (time.monotonic() - started) / 60
        how = f"{minutes:.1f} minutes" + (", quick, so the figures are rough" if options.quick else "")
        facts = f"One run on {machine()}; {how}; load average {load:.1f} at its start."
        links = f"Links: {stage.links() or 'none'}."
    text = f"{facts} {summary(measured)}. How: [README](README.md).\n\n{table(measured)}\n\n{links}\n"
    print(text)
    whole = not options.quick and not options.only
    if (place := options.write or (RESULTS if whole else None)) is not None:
        place.write_text(f"# Results\n\n{text}", encoding="utf-8")
    return 0


def _measure(row: Row) -> Measured:
    started = time.monotonic()
    series = run(row, tell=lambda line: print(line, file=sys.stderr))
    print(f"{row.key}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return Measured(row=row, series=series)


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, less data")
    parser.add_argument("--only", nargs="+", default=[], metavar="ROW", help="only these rows")
    parser.add_argument("--image", default="yaosb/test-base:1", help="has python3 (default: %(default)s)")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="where the table goes (default: results.md, whole runs only)"
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
