from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

from yaosb_jupyter.choices import Lifecycle, Status
from yaosb_jupyter.jupyter.views import (
    file_listing,
    pool_listing,
    sandbox_card,
    sandbox_listing,
    stats_card,
)
from yaosb_jupyter.options import PortMapping
from yaosb_jupyter.types import FileInfo, Isolation, PoolInfo, PoolLimits, SandboxInfo, SandboxStats

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
EVIL = "<script>alert(1)</script>\x1b[2J\u202e\n"
ISOLATION = Isolation(
    means="bubblewrap",
    files="hidden",
    metadata="hidden",
    unix_sockets="hidden",
    internet="none",
    host="none",
    lan="none",
    other_sandboxes="hidden",
    processes="own",
    memory="2 GiB",
    cpu="1 core",
    pids="512",
)
INFO = SandboxInfo(
    uid="01J",
    id="lab",
    runtime_id="r1",
    pool="default",
    owner="ada",
    chat="",
    image="python:3.12-slim",
    status=Status.RUNNING,
    status_reason="",
    reachable=True,
    lifecycle=Lifecycle.SESSION,
    labels={},
    ip="",
    created_at=NOW - timedelta(minutes=3),
    last_active=NOW - timedelta(seconds=4),
    process_count=0,
    idle_timeout=1800.0,
    max_lifetime=0.0,
    expires_at=NOW + timedelta(minutes=29, seconds=56),
    vnc=False,
    ports=(),
    link="",
    isolation=ISOLATION,
)
POOL = PoolInfo(
    name="default",
    address="embedded",
    runtime="embedded",
    is_local=True,
    connected=True,
    error="",
    running=1,
    total=2,
    limits=PoolLimits(max_total=10),
    isolation=ISOLATION,
)


class Elements(HTMLParser):
    """The names of all elements, and whether each was closed in order."""

    VOID = frozenset({"br", "img"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def safe(page: str) -> bool:
    elements = Elements(page)
    return "script" not in elements.names and not elements.open and "\x1b" not in page and "\u202e" not in page


def test_a_card_tells_what_is_known_in_both_forms() -> None:
    info = replace(INFO, ports=(PortMapping(container_port=80, host_port=8080),), labels={"team": "ml"})
    card = sandbox_card(info, now=NOW)
    text = repr(card)
    for shown in ("lab", "running", "python:3.12-slim", "3 min ago", "in 29 min", "80 at 127.0.0.1:8080", "team=ml"):
        assert shown in text
        assert shown in card._repr_html_()
    assert "idle for at most 30 min" in text


def test_empty_facts_are_left_out() -> None:
    text = repr(sandbox_card(INFO, now=NOW))
    assert "ports" not in text
    assert "labels" not in text


def test_text_forms_are_aligned() -> None:
    long = replace(INFO, id="a-much-longer-name", image="x")
    first, *rows = repr(sandbox_listing([INFO, long], current="01J", now=NOW)).splitlines()
    column = first.index("status")
    assert [row[column:].split()[0] for row in rows] == ["running", "running"]
    assert all(row[column - 1] == " " for row in rows)


def test_everything_from_a_sandbox_is_escaped() -> None:
    info = replace(
        INFO, id=EVIL, image=EVIL, status_reason=EVIL, chat=EVIL, ip=EVIL, labels={EVIL: EVIL}, warnings=(EVIL,)
    )
    file = FileInfo(name=EVIL, path=EVIL, size=1, mode=0o100644, mtime=0.0, is_dir=False, link_target=EVIL)
    pool = replace(POOL, name=EVIL, address=EVIL, error=EVIL, isolation=replace(ISOLATION, means=EVIL, files=EVIL))
    card, files = sandbox_card(info, now=NOW), file_listing([file])
    for page in (
        card._repr_html_(),
        stats_card(info, SandboxStats(cpu_percent=1, memory=1, memory_limit=2, pids=1))._repr_html_(),
        sandbox_listing([info], now=NOW)._repr_html_(),
        files._repr_html_(),
        pool_listing([pool])._repr_html_(),
    ):
        assert safe(page)
        assert "&lt;script&gt;" in page
    for text in (repr(card), repr(files), repr(pool_listing([pool]))):
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_a_file_name_cannot_forge_a_row() -> None:
    file = FileInfo(name="a\nb", path="a\nb", size=1, mode=0o100644, mtime=0.0, is_dir=False)
    assert len(repr(file_listing([file])).splitlines()) == 3  # headings, the file, the sums


def test_an_unreachable_sandbox_is_told() -> None:
    assert "running, unreachable" in repr(sandbox_card(replace(INFO, reachable=False), now=NOW))


def test_a_listing_is_a_sequence_of_its_items() -> None:
    listing = sandbox_listing([INFO], now=NOW)
    assert list(listing) == [INFO]
    assert listing[0].id == "lab"
    assert len(listing) == 1


def test_empty_listings_tell_the_next_step() -> None:
    assert "%sandbox create" in repr(sandbox_listing([]))
    assert "%sandbox create" in sandbox_listing([])._repr_html_()


def test_pools_show_every_fact_of_the_isolation() -> None:
    listing = pool_listing([POOL, replace(POOL, name="far", connected=False, error="no answer", isolation=None)])
    text = repr(listing)
    for shown in ("bubblewrap", "Unix sockets", "other sandboxes", "LAN", "not connected", "no answer", "2 of 10"):
        assert shown in text
    assert safe(listing._repr_html_())


def test_colours_come_from_the_theme_and_have_fallbacks() -> None:
    page = sandbox_card(INFO, now=NOW)._repr_html_()
    assert "var(--jp-border-color2," in page
    assert all("," in rest.split(")")[0] for rest in page.split("var(--jp-")[1:])


def test_of_a_big_directory_the_first_files_are_shown() -> None:
    files = [
        FileInfo(name=f"{number:05}", path=f"{number:05}", size=1, mode=0o100644, mtime=0.0, is_dir=number % 1000 == 0)
        for number in range(3000)
    ]
    listing = file_listing(files, title="lab:big", now=NOW)
    assert len(listing) == 3000  # all are there for who takes the value
    lines = repr(listing).splitlines()
    assert len(lines) == 504
    assert lines[0] == "lab:big"
    assert lines[2].startswith("00000/")  # directories come first
    assert lines[-2:] == ["the first 500 are shown, 2500 more are there", "3 directories, 2997 files, 2.93 KiB"]
    assert listing._repr_html_().count("<tr>") == 501
