"""Public failure cases, numerics: integer widths, NaN, infinities, signed zeros, casts, empty and 0-d tensors.

Each runs the compiled function three times, on at least two shapes, against the plain one and against known values.
"""

import dlc
import dlc.nn.functional as F
import pytest
from dlc import tensor

from tests.cases.harness import at_most, check

INF, NAN = float("inf"), float("nan")
INTS = [dlc.int8, dlc.uint8, dlc.int16, dlc.int32, dlc.int64]


def of(*values, **options):
    """A maker of one-tensor argument tuples."""
    return lambda: tuple(tensor(v, **options) for v in values)


def test_N01_floor_division_and_remainder_of_negative_ints():
    check(
        lambda a, b: (a // b, a % b),
        of([-9, -8, 9, 8], [4, -3, -4, 3]),
        of([-7] * 37, [2] * 37),
        expect=[[-3, 2, -3, 2], [3, -2, -3, 2]],
    )
    for dtype in (dlc.int8, dlc.int16, dlc.int32):
        check(lambda a: (a // 4, a % 4, a // -3, a % -3), lambda dtype=dtype: (dlc.arange(-20, 20, dtype=dtype),))


def test_N02_smallest_int_by_minus_one_wraps():
    def f(a):
        return a // -1

    check(f, of([-(2**31)], dtype=dlc.int32), expect=[[-(2**31)]])
    check(f, of([-128, -127], dtype=dlc.int8), of([-128] * 33, dtype=dlc.int8), expect=[[-128, 127]])
    check(f, of([-(2**63)], dtype=dlc.int64), expect=[[-(2**63)]])
    check(lambda a: a % -1, of([-(2**31), 5], dtype=dlc.int32), expect=[[0, 0]])


def test_N03_integer_division_by_zero_is_an_error():
    for f in (lambda a, b: a // b, lambda a, b: a % b, lambda a, b: ((a + 1) // b) * 2 - a):
        compiled = check(f, of([5, 0], [2, 0]), of([5] * 40, [1] * 39 + [0]), error=(ZeroDivisionError, RuntimeError))
        assert compiled(tensor([5, 3]), tensor([2, 1])).shape == (2,)


def test_N04_float_floor_division_rounds_like_python():
    check(
        lambda a, b: a // b,
        of([2.0, 4.0, 5.0, 0.8], [0.2, 0.4, 0.1, 0.1], dtype=dlc.float64),
        of([7.5, -7.5, -0.0, 1.0], [2.0, 2.0, 3.0, INF], dtype=dlc.float64),
        of([2.0, 4.0, 5.0, 0.8] * 10, [0.2, 0.4, 0.1, 0.1] * 10),
        expect=[[9.0, 9.0, 49.0, 8.0]],
    )


def test_N06_uint8_wraps_before_widening():
    check(
        lambda x: (x + x).to(dlc.int32),
        of([200, 100], dtype=dlc.uint8),
        of([255] * 35, dtype=dlc.uint8),
        expect=[[144, 200]],
    )


def test_N07_int32_wraps_before_widening():
    check(
        lambda x: (x * 2).to(dlc.int64),
        of([2**30, 2**31 - 1], dtype=dlc.int32),
        of([2**30] * 19, dtype=dlc.int32),
        expect=[[-(2**31), -2]],
    )


def test_N08_compare_sees_the_stored_unsigned_value():
    check(
        lambda x: (-x, (-x) < 10, (-x).to(dlc.float32)),
        of([3, 0], dtype=dlc.uint8),
        of([3, 0] * 20, dtype=dlc.uint8),
        expect=[[253, 0], [False, True], [253.0, 0.0]],
    )


def test_N10_small_int_extremes_at_every_length():
    check(
        lambda x: (x.min(), x.argmin()),
        lambda: (dlc.arange(60, 40, -1).to(dlc.uint8),),
        expect=[41, 19],
    )
    check(lambda x: (x.max(), x.argmax()), lambda: (-dlc.arange(60, 40, -1).to(dlc.int8),), expect=[-41, 19])
    for dtype in INTS:
        low = -90 if dtype != dlc.uint8 else 0

        def make(n, dtype=dtype, low=low):
            return lambda: ((dlc.arange(n) * 7 % 41 + low + 1).to(dtype),)

        check(lambda x: (x.min(), x.max(), x.argmin(), x.argmax()), *[make(n) for n in range(1, 41)], compilations=3)


def test_N12_nan_passes_through_extremes_both_ways():
    check(
        lambda a, b: (dlc.maximum(a, b), a.clamp(min=0.0), dlc.clamp_min(b, a), a.relu(), dlc.minimum(a, b)),
        of([NAN, 1.0], [1.0, NAN]),
        of([NAN, 1.0, -2.0] * 13, [1.0, NAN, 5.0] * 13),
        expect=[[NAN, NAN], [NAN, 1.0], [NAN, NAN], [NAN, 1.0], [NAN, NAN]],
    )


def test_N13_nan_is_the_extreme_of_argmax_and_argmin():
    check(
        lambda x: (x.argmax(), x.argmin(), x.max(0).indices, x.max(), x.min(0).values),
        of([2.0, NAN, 5.0]),
        of([1.0] * 20 + [NAN] + [9.0] * 20),
        expect=[1, 1, 1, NAN, NAN],
    )


def test_N14_times_zero_and_minus_itself_are_computed():
    check(
        lambda x: (x * 0, x - x),
        of([INF, NAN, -2.0]),
        of([INF, NAN, -2.0] * 12),
        expect=[[NAN, NAN, -0.0], [NAN, NAN, 0.0]],
    )


def test_N15_adding_zero_keeps_ieee_signs():
    check(
        lambda x: (1 / (x + 0.0), 1 / (x - 0.0), 1 / (x * 1)),
        of([-0.0]),
        of([-0.0, 0.0] * 20),
        expect=[[INF], [-INF], [-INF]],
    )


def test_N16_sums_are_not_reassociated():
    check(
        lambda x: (x + 1e8) - 1e8,
        of([0.25, 5.0]),
        of([0.25, 5.0, 3.0] * 15),
        expect=[[0.0, 8.0]],
    )


def test_N17_nan_tests_survive():
    def f(a):
        x = a / a
        return dlc.isnan(x), x != x, dlc.where(dlc.isnan(x), 7.0, x)

    check(f, of([0.0, 1.0]), of([0.0, 1.0, INF] * 14), expect=[[True, False], [True, False], [7.0, 1.0]])


def test_N19_bool_xor_to_float_to_atan2():
    def f(a):
        z = ((a != 0) ^ (a != 0)).float()
        return dlc.atan2(z, z)

    check(f, of([0, 4]), of([0, 4, -1] * 13), expect=[[0.0, 0.0]])


def test_N20_softmax_of_hugely_scaled_scores():
    compiled = check(
        lambda x: dlc.softmax(x * -1e14, 0),
        of([1.0, 2.0, 4.0]),
        of([3.0, 1.0, 2.0, 8.0] * 5),
        expect=[[1.0, 0.0, 0.0]],
        rtol=1e-6,
    )
    assert float(compiled(tensor([5.0, 4.0, 9.0])).sum()) == 1.0


def test_N21_softmax_of_infinities_is_nan():
    check(lambda x: dlc.softmax(x, 0), of([INF, 1.0]), of([-INF, -INF]), of([-INF] * 24), expect=[[NAN, NAN]])
    check(lambda x: dlc.softmax(x, 0), of([-INF, 0.0]), expect=[[0.0, 1.0]])


def test_N23_casts_written_by_the_user_round():
    check(
        lambda x: x.to(dlc.bfloat16).float(),
        of([0.1, 3.14159]),
        of([0.1, 3.14159, 1e-3] * 13),
        expect=[[0.10009765625, 3.140625]],
    )
    check(lambda x: (x * 3).to(dlc.float16).float() * 2, of([0.1, 2049.0]), of([0.7] * 29))


def test_N24_float_to_int_out_of_range_has_one_rule():
    check(
        lambda x: x.to(dlc.uint8),
        of([-1.0, -2.5, 300.0]),
        of([-1.0, -2.5, 300.0] * 13),
        expect=[[255, 254, 44]],
    )
    values = [NAN, INF, -INF, 1e10, -1e10, 3e9, -129.0, 128.0, 2.0**63, -0.9] * 4
    for dtype in INTS:
        check(lambda x, dtype=dtype: (x + 0.5).to(dtype), of(values), of(values[:7]))
    # A folded constant, a 0-d tensor and a vector agree.
    check(lambda x: (dlc.full((3,), -2.5).to(dlc.uint8), x.to(dlc.uint8)), of(-2.5), expect=[[254] * 3, 254])


def test_N26_index_out_of_range_raises():
    def embed(i, w):
        return F.embedding(i, w)

    check(embed, lambda: (tensor([0, -1]), dlc.arange(6.0).reshape(3, 2)), error=IndexError)
    check(embed, lambda: (tensor([0, 3]), dlc.arange(6.0).reshape(3, 2)), error=IndexError)
    check(lambda i, w: embed(i, w) * 2 + 1, lambda: (tensor([0, 3]), dlc.arange(6.0).reshape(3, 2)), error=IndexError)
    check(lambda x: dlc.index_select(x, 0, tensor([4])), lambda: (dlc.arange(4.0),), error=IndexError)
    check(lambda x, i: x[i], lambda: (dlc.arange(4.0), tensor([-1])), expect=[[3.0]])
    check(lambda x, i: x[i], lambda: (dlc.arange(4.0), tensor([-5])), error=IndexError)


@pytest.mark.parametrize("shape, order", [((4, 0), (1, 0)), ((3, 0, 2), (1, 2, 0)), ((3, 2, 0), (2, 0, 1))])
def test_N27_zero_size_dimension_in_front(shape, order):
    check(
        lambda x: (x.sum(), x.prod(), x.mean(), x.sum(0), x.any(), x.all(0)),
        lambda: (dlc.zeros(*shape).permute(*order),),
        compilations=3,
    )


def test_N27_zero_size_dimensions():
    check(
        lambda a, b: (a @ b, a.sum(), a.prod()),
        lambda: (dlc.zeros(3, 0), dlc.zeros(0, 2)),
        lambda: (dlc.ones(3, 2), dlc.ones(2, 2)),
        expect=[[[0.0, 0.0]] * 3, 0.0, 1.0],
        compilations=3,
    )
    check(lambda x: x.max(), lambda: (dlc.empty(0),), error=(RuntimeError, IndexError))
    check(lambda x: x[[0]], lambda: (dlc.empty(0),), error=IndexError)
    check(
        lambda x: (x * 2 + 1, x.sum(0), x.mean(1)),
        lambda: (dlc.zeros(0, 4),),
        lambda: (dlc.zeros(4, 0),),
        compilations=3,
    )


def test_N28_scalars_as_tensors():
    check(
        lambda x: (dlc.flip(x, []), x.sum(0), x.max(), x + tensor([1, 2])),
        of(5.0),
        of(-3.0),
        expect=[5.0, 5.0, 5.0, [6.0, 7.0]],
    )
    check(lambda x: dlc.flip(x, [0]), of(5.0))


def test_N30_type_promotion_with_scalars():
    def f(i, h, t):
        return i * 2.0, h * t, i * tensor(2.0, dtype=dlc.float64)

    def make():
        return tensor([1, 2]), dlc.ones(2, dtype=dlc.float16), tensor(3)

    check(f, make, expect=[[2.0, 4.0], [3.0, 3.0], [2.0, 4.0]])
    with at_most(1):
        kinds = [t.dtype for t in dlc.compile(f)(*make())]
    assert kinds == [dlc.float32, dlc.float16, dlc.float64]


@pytest.mark.parametrize("scalar", [2, 2.0, True])
@pytest.mark.parametrize("dtype", [dlc.bool, *INTS, dlc.float16, dlc.bfloat16, dlc.float32, dlc.float64])
def test_N30_result_type_table(dtype, scalar):
    x = dlc.ones(3, dtype=dtype)
    want = (x + scalar).dtype
    if isinstance(scalar, float):
        assert want == (dtype if dtype.is_floating_point else dlc.float32)
    elif dtype == dlc.bool:
        assert want == (dlc.bool if scalar is True else dlc.int64)
    else:
        assert want == dtype
    check(lambda t: (t + scalar, t * scalar, (t + scalar) * t), lambda: (x,))
