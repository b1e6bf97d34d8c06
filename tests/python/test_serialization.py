"""dlc.save and dlc.load: round trips, other readers, damaged files."""

import io
import json
from collections import OrderedDict

import dlc
import pytest
from dlc import nn


def round_trip(obj, tmp_path):
    path = tmp_path / "file.safetensors"
    dlc.save(obj, path)
    return dlc.load(path)


def test_structures(tmp_path):
    shared = dlc.ones(2)
    obj = {
        "w": dlc.arange(6, dtype=dlc.int16).view(2, 3).T,
        "nested": [1, 2.5, None, True, "text", (3, [4]), float("inf"), 2**60, b"\x00\xff", {1, 2}],
        "shared": (shared, shared),
        3: dlc.tensor(1.5, dtype=dlc.bfloat16),
        "dtype": dlc.float16,
        "size": dlc.Size([1, 2]),
        "empty": dlc.zeros(0, 3),
        "ordered": OrderedDict(b=1, a=2),
    }
    back = round_trip(obj, tmp_path)
    assert back["w"].tolist() == obj["w"].tolist() and back["w"].dtype == dlc.int16
    assert back["nested"] == obj["nested"] and back["shared"][0] is back["shared"][1]
    assert back[3].item() == 1.5 and back[3].dtype == dlc.bfloat16 and back["dtype"] is dlc.float16
    assert isinstance(back["size"], dlc.Size) and back["empty"].shape == (0, 3) and list(back["ordered"]) == ["b", "a"]


def test_model_and_optimizer(tmp_path):
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    optimizer = dlc.optim.Adam(model.parameters())
    model(dlc.rand(4, 3)).sum().backward()
    optimizer.step()
    back = round_trip({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path)
    fresh = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    fresh.load_state_dict(back["model"])
    other = dlc.optim.Adam(fresh.parameters())
    other.load_state_dict(back["optimizer"])
    assert dlc.equal(fresh[0].weight, model[0].weight)
    assert other.state[fresh[0].weight]["step"].item() == 1


def test_parameters_and_streams():
    file = io.BytesIO()
    dlc.save(nn.Parameter(dlc.ones(2)), file)
    file.seek(0)
    back = dlc.load(file)
    assert isinstance(back, nn.Parameter) and back.requires_grad


def test_safetensors_reads_what_we_write(tmp_path):
    from safetensors import numpy

    path = tmp_path / "a.safetensors"
    dlc.save({"x.weight": dlc.arange(4.0).view(2, 2)}, path)
    assert numpy.load_file(path)["x.weight"].tolist() == [[0, 1], [2, 3]]
    numpy.save_file({"y": numpy.load_file(path)["x.weight"]}, tmp_path / "b.safetensors")
    assert dlc.load(tmp_path / "b.safetensors")["y"].tolist() == [[0, 1], [2, 3]]


def test_code_is_refused(tmp_path):
    with pytest.raises(TypeError, match="no code"):
        dlc.save({"f": print}, tmp_path / "f")
    assert not list(tmp_path.iterdir())


def header_of(**entries):
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text


GOOD = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"abc",
        b"\x80\x02}q\x00.........",
        (10**12).to_bytes(8, "little") + b"{}",
        (5).to_bytes(8, "little") + b"[1,2]",
        (4).to_bytes(8, "little") + b"nope",
        header_of(t=GOOD) + b"1234",
        header_of(t={**GOOD, "dtype": "C64"}) + bytes(8),
        header_of(t={**GOOD, "shape": [3]}) + bytes(8),
        header_of(t={**GOOD, "shape": [-2]}) + bytes(8),
        header_of(t={**GOOD, "data_offsets": [4, 2]}) + bytes(8),
        header_of(t={**GOOD, "data_offsets": "x"}) + bytes(8),
        header_of(t=[1]) + bytes(8),
        header_of(__metadata__={"dlc": '{"$": "tensor", "v": "gone", "grad": false}'}),
        header_of(__metadata__={"dlc": '{"$": "evil", "v": []}'}),
        header_of(__metadata__={"dlc": "{"}),
    ],
)
def test_damaged_files(data):
    with pytest.raises(RuntimeError, match="no valid dlc or safetensors file"):
        dlc.load(io.BytesIO(data))


def test_truncated_anywhere(tmp_path):
    file = io.BytesIO()
    dlc.save({"a": dlc.ones(3), "b": [1, 2]}, file)
    data = file.getvalue()
    for size in range(0, len(data), 7):
        with pytest.raises(RuntimeError):
            dlc.load(io.BytesIO(data[:size]))
    with pytest.raises(FileNotFoundError):
        dlc.load(tmp_path / "missing")
