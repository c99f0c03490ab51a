import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from tests.unit.records import make_record
from yaosb_jupyter.choices import Status
from yaosb_jupyter.core.records import RecordStore, write_atomically


@pytest.fixture
def store(tmp_path: Path) -> RecordStore:
    store = RecordStore(tmp_path / "data")
    store.open()
    return store


def reopened(store: RecordStore) -> RecordStore:
    again = RecordStore(store.data_dir)
    again.open()
    return again


def test_a_record_comes_back_field_by_field(store: RecordStore) -> None:
    record = make_record(lost=("policy",), doomed=True)
    store.prepare(record)
    (loaded,) = reopened(store).load_all()
    for field in fields(record):
        assert getattr(loaded, field.name) == getattr(record, field.name), field.name


def test_the_data_directory_keeps_its_id(store: RecordStore, tmp_path: Path) -> None:
    assert store.open() == reopened(store).open()
    assert RecordStore(tmp_path / "other").open() != store.open()


def test_unknown_fields_survive_at_both_levels(store: RecordStore) -> None:
    record = make_record()
    store.prepare(record)
    path = store.directory(record.uid) / "record.json"
    content = json.loads(path.read_text())
    content["future"] = [1]
    content["options"]["future"] = {"a": 1}
    path.write_text(json.dumps(content))
    again = reopened(store)
    (loaded,) = again.load_all()
    again.save(replace(loaded, status=Status.STOPPED))
    written = json.loads(path.read_text())
    assert written["future"] == [1]
    assert written["options"]["future"] == {"a": 1}
    assert written["status"] == "stopped"
    assert written["schema"] == 1


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"schema": 1}', '{"schema": 1, "uid": 3}'])
def test_a_broken_record_is_set_aside(store: RecordStore, content: str) -> None:
    good, bad = make_record(id="good"), make_record(id="bad")
    store.prepare(good)
    store.prepare(bad)
    path = store.directory(bad.uid) / "record.json"
    path.write_text(content)
    assert reopened(store).load_all() == [good]
    assert path.with_suffix(".json.broken").exists()


def test_a_record_of_another_uid_is_set_aside(store: RecordStore) -> None:
    one, other = make_record(id="one"), make_record(id="other")
    store.prepare(one)
    store.prepare(other)
    text = (store.directory(one.uid) / "record.json").read_text()
    (store.directory(other.uid) / "record.json").write_text(text)
    assert reopened(store).load_all() == [one]


def test_deleting_leaves_nothing_and_touches_nothing_else(store: RecordStore) -> None:
    one, other = make_record(id="one"), make_record(id="other")
    store.prepare(one)
    store.prepare(other)
    (store.directory(one.uid) / "workspace" / "f").write_text("x")
    (store.directory(one.uid) / "workspace" / "link").symlink_to(store.directory(other.uid))
    store.delete(one.uid, one.owner, one.id)
    store.delete(one.uid, one.owner, one.id)
    assert not store.directory(one.uid).exists()
    owners = store.data_dir / "by-owner"
    assert [link.name for link in owners.glob("*/*")] == ["other"]
    assert reopened(store).load_all() == [other]


def test_only_empty_leftovers_are_swept(store: RecordStore) -> None:
    record = make_record()
    store.prepare(record)
    (store.directory(record.uid) / "record.json").unlink()
    empty = store.directory(make_record().uid)
    empty.mkdir()
    (empty / ".record.json.1.new").write_text("{")
    store.sweep()
    assert not empty.exists()
    assert store.directory(record.uid).exists()


def test_a_failed_write_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "record.json"
    write_atomically(path, b"old")

    def refuse(_descriptor: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(OSError, match="no space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["record.json"]
