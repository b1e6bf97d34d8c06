"""Tensors from Python: creation, conversion, attributes, promotion, errors, memory shared with NumPy and DLPack."""

import copy
import gc
import pickle
import threading
import weakref

import dlc
import numpy as np
import pytest


def test_creation_from_nested_data():
    t = dlc.tensor([[1, 2, 3], [4, 5, 6]])
    assert t.dtype == dlc.int64 and t.shape == (2, 3) and t.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert dlc.tensor([1.0, 2]).dtype == dlc.float32
    assert dlc.tensor([True, False]).dtype == dlc.bool
    assert dlc.tensor(3).dim() == 0
    assert dlc.tensor([]).shape == (0,) and dlc.tensor([]).dtype == dlc.float32
    assert dlc.tensor([[], []]).shape == (2, 0)
    assert dlc.tensor(range(3)).tolist() == [0, 1, 2]
    assert dlc.tensor([dlc.tensor(1.5), dlc.tensor(2.5)]).tolist() == [1.5, 2.5]
    assert dlc.tensor(np.float64(2)).dtype == dlc.float64
    assert dlc.tensor([1, 2], dtype=dlc.float16).dtype == dlc.float16
    assert dlc.tensor([1.7], dtype=dlc.int32).tolist() == [1]
    assert dlc.tensor([1.0], requires_grad=True).requires_grad


@pytest.mark.parametrize(
    "data, error",
    [
        ([[1, 2], [3]], ValueError),
        ([1, [2]], ValueError),
        ([[1], 2], ValueError),
        ("text", TypeError),
        ([None], TypeError),
        ([2**70], RuntimeError),
    ],
)
def test_creation_errors(data, error):
    with pytest.raises(error):
        dlc.tensor(data)


def test_integer_out_of_range():
    with pytest.raises(RuntimeError):
        dlc.tensor([300], dtype=dlc.uint8)
    with pytest.raises(RuntimeError):
        dlc.tensor([1.5], dtype=dlc.int64, requires_grad=True)


def test_identity_is_kept():
    t = dlc.ones(2)
    assert t.add_(1) is t
    assert t.contiguous() is t
    assert t.to(dlc.float32) is t
    assert [t][0].requires_grad_(True) is t


def test_weak_references_and_attributes():
    t = dlc.ones(2)
    t.note = "kept"
    ref = weakref.ref(t)
    assert ref() is t and t.note == "kept"
    t.cycle = t
    del t
    gc.collect()
    assert ref() is None


def test_subclass():
    class Named(dlc.Tensor):
        pass

    t = dlc.ones(2)
    named = dlc.Tensor._make_subclass(Named, t)
    assert isinstance(named, Named) and type(named + 1) is dlc.Tensor
    t.fill_(5)
    assert named.tolist() == [5, 5]


def test_layout_attributes():
    t = dlc.zeros(2, 3, 4)
    assert t.size() == (2, 3, 4) and t.size(-1) == 4 and t.stride() == (12, 4, 1) and t.stride(0) == 12
    assert t.ndim == t.dim() == 3 and t.numel() == t.nelement() == 24
    assert t.element_size() == 4 and t.nbytes == 96 and t.itemsize == 4
    assert t.transpose(0, 2).stride() == (1, 4, 12) and not t.transpose(0, 2).is_contiguous()
    assert t.T.shape == (4, 3, 2) and t.mT.shape == (2, 4, 3)
    assert t.device == dlc.device("cpu") and str(t.device) == "cpu"
    assert t[1].storage_offset() == 12
    assert isinstance(t.shape, dlc.Size) and repr(t.shape) == "dlc.Size([2, 3, 4])"
    assert t.shape.numel() == 24 and isinstance(t.shape[1:], dlc.Size) and t.shape + (1,) == (2, 3, 4, 1)
    with pytest.raises(IndexError):
        t.size(3)


def test_values():
    assert dlc.tensor(2.5).item() == 2.5 and dlc.tensor([[7]]).item() == 7 and dlc.tensor(True).item() is True
    assert float(dlc.tensor(1.5)) == 1.5 and int(dlc.tensor(2.9)) == 2 and [10, 20, 30][dlc.tensor(1)] == 20
    assert bool(dlc.tensor([0.0])) is False and len(dlc.zeros(5, 2)) == 5
    with pytest.raises(RuntimeError):
        bool(dlc.zeros(2))
    with pytest.raises(RuntimeError):
        dlc.zeros(2).item()
    with pytest.raises(TypeError):
        len(dlc.tensor(1))
    with pytest.raises(TypeError):
        [1, 2][dlc.tensor(1.0)]
    assert f"{dlc.tensor(1.23456):.2f}" == "1.23"


def test_iteration_and_membership():
    t = dlc.arange(6).view(3, 2)
    assert [row.tolist() for row in t] == [[0, 1], [2, 3], [4, 5]]
    assert 3 in t and 7 not in t and dlc.tensor(2) in t
    with pytest.raises(TypeError):
        iter(dlc.tensor(1))
    a, b = dlc.tensor([1, 2])
    assert (a.item(), b.item()) == (1, 2)


def test_hash_and_comparison():
    a, b = dlc.ones(2), dlc.ones(2)
    assert len({a, b}) == 2 and a in {a: 1}
    assert (a == b).tolist() == [True, True]
    assert (a == None) is False and (a != "x") is True  # noqa: E711


def test_dtypes():
    assert repr(dlc.float32) == "dlc.float32" and dlc.float is dlc.float32 and dlc.long is dlc.int64
    assert dlc.bfloat16.itemsize == 2 and dlc.float16.is_floating_point and not dlc.uint8.is_signed
    assert copy.deepcopy(dlc.int8) is dlc.int8 and pickle.loads(pickle.dumps(dlc.int8)) is dlc.int8
    assert dlc.finfo(dlc.float32).eps == np.finfo(np.float32).eps and dlc.finfo(dlc.float16).max == 65504
    assert dlc.iinfo(dlc.int8).min == -128
    with pytest.raises(TypeError):
        dlc.finfo(dlc.int32)


def test_conversion_methods():
    t = dlc.tensor([1.5, -2.5])
    assert t.int().dtype == dlc.int32 and t.long().tolist() == [1, -2] and t.bool().tolist() == [True, True]
    assert t.half().dtype == dlc.float16 and t.bfloat16().dtype == dlc.bfloat16 and t.double().dtype == dlc.float64
    assert (
        t.to("cpu") is t
        and t.to(dtype=dlc.float64).dtype == dlc.float64
        and t.to(dlc.zeros(1, dtype=dlc.int8)).dtype == dlc.int8
    )
    assert t.to(dlc.float32, copy=True) is not t
    assert (
        t.type() == "dlc.FloatTensor"
        and t.type(dlc.int16).dtype == dlc.int16
        and t.type_as(t.long()).dtype == dlc.int64
    )


def test_cuda_is_a_clear_error():
    assert not dlc.cuda.is_available()
    assert dlc.device("cuda:1").index == 1
    for attempt in (
        lambda: dlc.zeros(2, device="cuda"),
        lambda: dlc.zeros(2).to("cuda"),
        lambda: dlc.zeros(2).cuda(),
        lambda: dlc.tensor(1, device="cuda"),
    ):
        with pytest.raises(RuntimeError, match="cuda"):
            attempt()
    with pytest.raises(RuntimeError, match="unknown device"):
        dlc.device("gpu")


def test_default_dtype():
    try:
        dlc.set_default_dtype(dlc.float64)
        assert dlc.tensor(1.0).dtype == dlc.float64 and dlc.zeros(1).dtype == dlc.float64
    finally:
        dlc.set_default_dtype(dlc.float32)
    with pytest.raises(TypeError):
        dlc.set_default_dtype(dlc.int64)


@pytest.mark.parametrize(
    "a, b, result",
    [
        (dlc.ones(1, dtype=dlc.uint8), dlc.ones(1, dtype=dlc.int8), dlc.int16),
        (dlc.ones(1, dtype=dlc.int32), 1.5, dlc.float32),
        (dlc.ones(1, dtype=dlc.int32), 1, dlc.int32),
        (dlc.ones(1, dtype=dlc.uint8), dlc.tensor(5, dtype=dlc.int64), dlc.uint8),
        (dlc.ones(1, dtype=dlc.int8), dlc.tensor(1.5), dlc.float32),
        (dlc.ones(1, dtype=dlc.float16), dlc.tensor(1.5, dtype=dlc.float64), dlc.float16),
        (dlc.ones(1, dtype=dlc.float16), dlc.ones(1, dtype=dlc.bfloat16), dlc.float32),
        (dlc.ones(1, dtype=dlc.bool), True, dlc.bool),
        (dlc.ones(1, dtype=dlc.bool), 1, dlc.int64),
    ],
)
def test_promotion(a, b, result):
    assert (a + b).dtype == result and (b + a).dtype == result
    assert dlc.result_type(a, b) == result


def test_promotion_queries():
    assert dlc.promote_types(dlc.uint8, dlc.int8) == dlc.int16
    assert dlc.can_cast(dlc.int32, dlc.float16) and not dlc.can_cast(dlc.float32, dlc.int64)


def test_numpy_shares_memory():
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = dlc.from_numpy(a)
    t[0, 0] = 9
    assert a[0, 0] == 9
    b = t.T.numpy()
    b[2, 1] = 7
    assert t[1, 2].item() == 7 and b.strides == (4, 12)
    assert np.asarray(dlc.ones(2)).dtype == np.float32 and np.array(dlc.ones(2), dtype=np.int8).dtype == np.int8
    assert dlc.as_tensor(a).data_ptr() == t.data_ptr() and dlc.tensor(a).data_ptr() != t.data_ptr()
    assert dlc.zeros(0, 3).numpy().shape == (0, 3) and dlc.tensor(1.0).numpy().shape == ()
    del t
    gc.collect()
    assert b.sum() == a.sum()


def test_numpy_arithmetic():
    t, a = dlc.ones(2), np.ones(2, np.float32)
    assert isinstance(t * np.float32(2), dlc.Tensor) and isinstance(np.float64(2) * t, dlc.Tensor)
    assert (t + np.int64(1)).dtype == dlc.float32
    assert np.allclose(np.asarray(t) + a, 2)


@pytest.mark.parametrize(
    "array, error",
    [
        (np.arange(4)[::-1], ValueError),
        (np.array(["a"]), TypeError),
        (np.ones(2, np.complex64), TypeError),
        (np.ones(2, ">f4"), TypeError),
        ([1, 2], TypeError),
    ],
)
def test_from_numpy_errors(array, error):
    with pytest.raises(error):
        dlc.from_numpy(array)


def test_numpy_of_what_numpy_cannot_have():
    with pytest.raises(TypeError, match="bfloat16"):
        dlc.ones(1, dtype=dlc.bfloat16).numpy()
    x = dlc.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="detach"):
        x.numpy()
    assert x.numpy(force=True)[0] == 1


def test_dlpack():
    a = np.arange(12, dtype=np.int32).reshape(3, 4)
    t = dlc.from_dlpack(a.T)
    assert t.stride() == (1, 4) and t.data_ptr() == a.ctypes.data
    back = np.from_dlpack(t)
    a[0, 0] = 5
    assert back[0, 0] == 5 and t.__dlpack_device__() == (1, 0)
    u = dlc.from_dlpack(dlc.ones(2, dtype=dlc.bfloat16))
    assert u.dtype == dlc.bfloat16 and u.float().tolist() == [1, 1]
    capsule = dlc.ones(3).__dlpack__()
    assert dlc.from_dlpack(capsule).tolist() == [1, 1, 1]
    with pytest.raises(ValueError):
        dlc.from_dlpack(capsule)


def test_frombuffer():
    data = bytearray(np.arange(4, dtype=np.int16).tobytes())
    t = dlc.frombuffer(data, dtype=dlc.int16, offset=2)
    assert t.tolist() == [1, 2, 3]
    with pytest.raises(ValueError):
        dlc.frombuffer(data, dtype=dlc.int16, count=9)


def test_copies():
    t = dlc.arange(3.0).requires_grad_()
    c = copy.deepcopy({"a": t, "b": t})
    assert c["a"] is c["b"] and c["a"].requires_grad and c["a"].data_ptr() != t.data_ptr()
    assert pickle.loads(pickle.dumps(t)).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError):
        copy.deepcopy(t * 2)


def test_new_and_like():
    t = dlc.zeros(2, 3, dtype=dlc.float64)
    assert (
        t.new_ones(4).dtype == dlc.float64
        and t.new_zeros((1, 2)).shape == (1, 2)
        and t.new_full((2,), 3).tolist() == [3, 3]
    )
    assert t.new_tensor([1]).dtype == dlc.float64 and dlc.ones_like(t, dtype=dlc.int8).dtype == dlc.int8


def test_operators():
    t = dlc.tensor([5.0, -3.0])
    assert (
        (2 - t).tolist() == [-3, 5]
        and (1 / t).tolist() == pytest.approx([0.2, -1 / 3])
        and (2**t).tolist() == [32, 0.125]
    )
    assert (
        (t // 2).tolist() == [2, -2]
        and (t % 3).tolist() == [2, 0]
        and (-t).tolist() == [-5, 3]
        and abs(t).tolist() == [5, 3]
    )
    i = dlc.tensor([6, 3])
    assert (
        (i & 2).tolist() == [2, 2]
        and (i | 1).tolist() == [7, 3]
        and (i ^ 5).tolist() == [3, 6]
        and (~i).tolist() == [-7, -4]
    )
    assert (
        (i << 1).tolist() == [12, 6]
        and (i >> 1).tolist() == [3, 1]
        and (7 % i).tolist() == [1, 1]
        and (20 // i).tolist() == [3, 6]
    )
    assert (t > 0).tolist() == [True, False] and (3 > i).tolist() == [False, False]
    m = dlc.eye(2)
    assert (m @ t).tolist() == [5, -3]
    t += 1
    t *= 2
    assert t.tolist() == [12, -4]
    with pytest.raises(TypeError):
        t + "x"
    with pytest.raises(TypeError):
        t + [1, 2]


def test_out_and_names():
    out = dlc.empty(0)
    assert dlc.add(dlc.ones(2), 1, out=out) is out and out.tolist() == [2, 2]
    t = dlc.arange(6.0).view(2, 3)
    assert dlc.sum(t, axis=1).tolist() == [3, 12] and dlc.sum(input=t, dim=0, keepdims=True).shape == (1, 3)
    values, indices = dlc.max(t, 1)
    result = t.max(dim=1)
    assert result.values.tolist() == values.tolist() and result.indices.tolist() == indices.tolist()
    assert t.view(3, 2).shape == t.view((3, 2)).shape == t.view(-1, 2).shape and t.permute(1, 0).shape == (3, 2)
    assert [p.tolist() for p in dlc.arange(5).split(2)] == [[0, 1], [2, 3], [4]]


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: dlc.add(dlc.ones(2), "x"), TypeError, "add.*other.*str"),
        (lambda: dlc.add(dlc.ones(2)), TypeError, "other"),
        (lambda: dlc.add(dlc.ones(2), 1, 2), TypeError, "positional"),
        (lambda: dlc.add(dlc.ones(2), 1, beta=2), TypeError, "beta"),
        (lambda: dlc.add(dlc.ones(2), 1, other=2), TypeError, "other"),
        (lambda: dlc.add(dlc.ones(2), dlc.ones(3)), RuntimeError, "add.*2.*3"),
        (lambda: dlc.ones(2, 3) @ dlc.ones(2, 3), RuntimeError, "3"),
        (lambda: dlc.ones(2).sum(3), IndexError, "sum.*3"),
        (lambda: dlc.ones(2, 3).view(4), RuntimeError, "view"),
        (lambda: dlc.ones(2).max("a"), TypeError, "max"),
        (lambda: dlc.cat([dlc.ones(2), 3]), TypeError, "cat.*tensors"),
        (lambda: dlc.zeros(-1), RuntimeError, "-1"),
    ],
)
def test_errors_name_op_and_argument(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "test_tensor.py:" in str(caught.value).split("\n")[0]


def test_functions():
    a = dlc.tensor([1.0, float("nan")])
    assert dlc.allclose(a, a, equal_nan=True) and not dlc.allclose(a, a)
    assert dlc.equal(dlc.ones(2), dlc.ones(2)) and not dlc.equal(dlc.ones(2), dlc.ones(3))
    assert dlc.isclose(dlc.tensor([1.0, float("inf")]), dlc.tensor([1.0 + 1e-7, float("inf")])).tolist() == [True, True]
    assert dlc.broadcast_shapes((2, 1), (3,)) == (2, 3)
    with pytest.raises(RuntimeError):
        dlc.broadcast_shapes((2,), (3,))
    x, y = dlc.meshgrid(dlc.arange(2), dlc.arange(3), indexing="xy")
    assert x.shape == (3, 2) and y[2, 0].item() == 2
    assert dlc.is_tensor(a) and not dlc.is_tensor(1) and dlc.numel(a) == 2


def test_random_state():
    dlc.manual_seed(7)
    a = dlc.rand(3)
    state = dlc.get_rng_state()
    b = dlc.randn(3)
    dlc.set_rng_state(state)
    assert dlc.equal(b, dlc.randn(3))
    dlc.manual_seed(7)
    assert dlc.equal(a, dlc.rand(3)) and dlc.initial_seed() == 7
    g = dlc.Generator().manual_seed(7)
    assert dlc.equal(dlc.rand(3, generator=g), a)
    with dlc.random.fork_rng():
        dlc.rand(5)
    assert dlc.equal(b, dlc.randn(3))


def test_threads_and_memory():
    n = dlc.get_num_threads()
    dlc.set_num_threads(1)
    assert dlc.get_num_threads() == 1
    dlc.set_num_threads(n)
    with pytest.raises(ValueError):
        dlc.set_num_threads(0)
    dlc.reset_peak_memory_stats()
    before = dlc.memory_stats()["allocated"]
    t = dlc.zeros(1 << 20)
    assert dlc.memory_stats()["allocated"] >= before + t.nbytes
    del t
    assert dlc.memory_stats()["peak_allocated"] >= before + (1 << 22)


def test_gil_is_released_in_kernels():
    """Two threads multiply at the same time without harm, and a third one goes on counting."""
    a = dlc.ones(400, 400)
    results, count, stop = [], [0], threading.Event()

    def work():
        for _ in range(5):
            results.append((a @ a)[0, 0].item())

    def tick():
        while not stop.is_set():
            count[0] += 1

    threads = [threading.Thread(target=work) for _ in range(2)]
    ticker = threading.Thread(target=tick)
    ticker.start()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    stop.set()
    ticker.join()
    assert results == [400.0] * 10 and count[0] > 0


def test_power_of_two_is_a_square():
    """A literal exponent 2 costs a product, in every spelling; dtypes and gradients are those of pow."""
    x = dlc.tensor([0.1, -3.0, float("nan"), float("inf"), 1e-30])
    for y in (x**2, x.pow(2), dlc.pow(x, 2), x.clone().pow_(2), dlc.pow(x, 2, out=dlc.empty(5))):
        np.testing.assert_array_equal(y.numpy(), (x * x).numpy())
    assert (dlc.tensor([3, -4]) ** 2).tolist() == [9, 16] and (dlc.tensor([3]) ** 2).dtype == dlc.int64
    assert (dlc.tensor([3]) ** 2.0).dtype == dlc.float32
    assert (2 ** dlc.tensor([3.0])).item() == 8
    t = dlc.tensor([3.0], requires_grad=True)
    (t**2).sum().backward()
    assert t.grad.item() == 6
    with pytest.raises(RuntimeError):
        dlc.tensor([True]) ** 2


def test_version_and_config():
    assert dlc.__version__.count(".") >= 1
    assert "threads" in dlc.show_config()
