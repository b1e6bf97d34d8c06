"""Subscripts, reading and writing, against NumPy."""

import dlc
import numpy as np
import pytest

BASE = np.arange(60, dtype=np.int64).reshape(3, 4, 5)
INDICES = [
    0,
    -1,
    (1, 2),
    (1, 2, 3),
    slice(None),
    slice(1, None),
    slice(-2, None),
    slice(0, 3, 2),
    slice(5, 9),
    (slice(None), 1),
    (..., 0),
    (0, ..., 1),
    None,
    (None, 1),
    (slice(None), None, 2),
    (..., None),
    (),
    [0, 2],
    [[0, 1], [2, 0]],
    ([0, 2], [1, 3]),
    (slice(None), [0, 2]),
    ([0, 1], slice(None), [1, 2]),
    (slice(None), [0, 1], [1, 2]),
    (0, [1, 2]),
    ([1, 2], 0),
    (slice(0, 2), [1], slice(1, 3)),
    (..., [0, 4]),
    (None, [0, 1]),
    [-1, 0],
    np.array([True, False, True]),
    (slice(None), np.array([True, False, True, True])),
    (np.array([True, False, True]), 1),
    BASE % 3 == 0,
    BASE[:, :, 0] % 2 == 0,
    (BASE[:, :, 0] % 2 == 0, 1),
    np.zeros(3, bool),
    [],
    True,
    False,
    (True, 0),
]


def as_index(index, make):
    if isinstance(index, tuple):
        return tuple(as_index(i, make) for i in index)
    return make(index) if isinstance(index, np.ndarray) else index


def numpy_index(index):
    if isinstance(index, tuple):
        return tuple(numpy_index(i) for i in index)
    return np.array(index, dtype=np.int64) if isinstance(index, list) else index


@pytest.mark.parametrize("index", INDICES, ids=lambda i: repr(i)[:40])
def test_read(index):
    want = BASE[numpy_index(index)]
    got = dlc.tensor(BASE)[as_index(index, dlc.tensor)]
    assert tuple(got.shape) == want.shape
    np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("index", INDICES, ids=lambda i: repr(i)[:40])
def test_write(index):
    for value in (7, "tensor"):
        want, got = BASE.copy(), dlc.tensor(BASE)
        shape = want[numpy_index(index)].shape
        given = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape) - 100 if value == "tensor" else value
        want[numpy_index(index)] = given
        got[as_index(index, dlc.tensor)] = dlc.tensor(given) if value == "tensor" else value
        np.testing.assert_array_equal(got.numpy(), want)


def test_views_share_memory():
    t = dlc.zeros(3, 4)
    t[1][2] = 5
    t[:, 0] += 1
    t[2:, 1:3].fill_(9)
    row = t[...]
    row[0, 3] = 4
    assert t.tolist() == [[1, 0, 0, 4], [1, 0, 5, 0], [1, 9, 9, 0]]
    assert t[:].data_ptr() == t.data_ptr() and t[[0]].data_ptr() != t.data_ptr()


def test_integer_tensors_of_any_width():
    t = dlc.arange(10)
    for dtype in (dlc.int8, dlc.int16, dlc.int32, dlc.int64):
        assert t[dlc.tensor([3, -1], dtype=dtype)].tolist() == [3, 9]
    assert t[dlc.tensor(4)].item() == 4 and t[np.int32(4)].item() == 4
    assert t[dlc.tensor(2) : dlc.tensor(4)].tolist() == [2, 3]


def test_assignment_converts_and_broadcasts():
    t = dlc.zeros(2, 3)
    t[0] = dlc.tensor([1, 2, 3])
    t[1] = 7
    t[:, 1] = dlc.tensor([[8.0, 9.0]])
    t[dlc.tensor([True, False])] += 1
    assert t.tolist() == [[2, 9, 4], [7, 9, 7]]
    t[t > 8] = 0
    assert t.tolist() == [[2, 0, 4], [7, 0, 7]]
    t[0] = [4, 5, 6]
    assert t[0].tolist() == [4, 5, 6]


@pytest.mark.parametrize(
    "index, error",
    [
        (3, IndexError),
        (-4, IndexError),
        ((0, 0, 0, 0), IndexError),
        ((..., ...), IndexError),
        ([5], IndexError),
        (dlc.tensor([1.0]), IndexError),
        (dlc.tensor([True, False]), IndexError),
        ("a", (IndexError, TypeError)),
        (slice(None, None, -1), ValueError),
        (slice(None, None, 0), ValueError),
        (slice("a", None), TypeError),
    ],
)
def test_errors(index, error):
    with pytest.raises(error):
        dlc.tensor(BASE)[index]


def test_gradients():
    x = dlc.arange(6.0).view(2, 3).requires_grad_()
    (x[0, 1:] * 2).sum().backward()
    x[:, [0, 0, 2]].sum().backward()
    x[x > 3].sum().backward()
    assert x.grad.tolist() == [[2, 2, 3], [2, 1, 2]]
    y = dlc.zeros(3)
    v = dlc.tensor([5.0], requires_grad=True)
    z = y * 1
    z[1] = v[0]
    (z * dlc.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert v.grad.tolist() == [2]
