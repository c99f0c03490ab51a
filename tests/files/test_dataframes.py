"""pandas, polars and pyarrow, straight from and to a sandbox."""

from __future__ import annotations

from collections.abc import Iterator

import fsspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.daemon.conftest import Station
from yaosb_jupyter.blocking import entry
from yaosb_jupyter.blocking.entry import manager as process_manager
from yaosb_jupyter.blocking.sandbox import Sandbox


@pytest.fixture
def sandbox(station: Station, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    monkeypatch.setattr(entry, "_current", None)
    with process_manager() as manager:
        yield manager.create("lab")


ROWS = 100_000


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame({"x": range(ROWS), "y": [f"row {number}" for number in range(ROWS)]})


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "json", "pkl", "feather"])
def test_pandas(sandbox: Sandbox, frame: pd.DataFrame, form: str) -> None:
    kind = {"csv.gz": "csv", "pkl": "pickle"}.get(form, form)
    more = {"index": False} if kind == "csv" else {}
    getattr(frame, f"to_{kind}")(f"sandbox://lab/out/data.{form}", **more)
    pd.testing.assert_frame_equal(getattr(pd, f"read_{kind}")(f"sandbox://lab/out/data.{form}"), frame)


def test_pandas_sees_what_the_sandbox_wrote_last(sandbox: Sandbox) -> None:
    for rows in (1, 2, 3):
        sandbox.exec(f"(echo a,b; seq {rows} | sed 's/$/,x/') > data.csv", check=True)
        assert len(pd.read_csv("sandbox://lab/data.csv")) == rows
        with (sandbox.files / "data.csv").open() as file:
            assert len(pd.read_csv(file)) == rows
    with pytest.raises(FileNotFoundError):
        pd.read_csv("sandbox://lab/none.csv")


def test_polars(sandbox: Sandbox) -> None:
    frame = pl.DataFrame({"x": list(range(ROWS)), "y": ["a"] * ROWS})
    with (sandbox.files / "data.csv").open("wb") as file:
        frame.write_csv(file)
    with (sandbox.files / "data.csv").open("rb") as file:
        assert pl.read_csv(file).equals(frame)
    assert pl.read_csv("sandbox://lab/data.csv", use_pyarrow=True).equals(frame)  # else it reads addresses itself
    with fsspec.open("sandbox://lab/data.parquet", "wb") as file:
        frame.write_parquet(file)
    with fsspec.open("sandbox://lab/data.parquet") as file:
        assert pl.read_parquet(file).equals(frame)
    dataset = ds.dataset("lab/data.parquet", filesystem=fsspec.filesystem("sandbox"))
    assert pl.scan_pyarrow_dataset(dataset).filter(pl.col("x") > 10).collect().height == ROWS - 11


def test_pyarrow_datasets(sandbox: Sandbox) -> None:
    fs = fsspec.filesystem("sandbox")
    table = pa.table({"x": list(range(1000)), "part": [number % 3 for number in range(1000)]})
    pq.write_to_dataset(table, "lab/set", partition_cols=["part"], filesystem=fs)
    assert sandbox.exec("ls set", check=True).stdout.split() == ["part=0", "part=1", "part=2"]
    dataset = ds.dataset("lab/set", filesystem=fs, partitioning="hive")
    assert dataset.to_table(filter=ds.field("part") == 1).num_rows == 333
    assert dataset.count_rows() == 1000
    with fs.open("lab/one.parquet", "wb") as file:
        pq.write_table(table, file, row_group_size=100)
    assert pq.ParquetFile("lab/one.parquet", filesystem=fs).read_row_group(3)["x"][0].as_py() == 300
