"""Whatever a compiled function reads is changed after it has been compiled and run: the next call must see it.

And the other way round: a change beside what is read must not cost a compilation, nor send a call back to Python.
"""

import dlc
import pytest

from tests.python.guard_cases import CASES


def plain(value):
    """A result as Python data that compares."""
    if isinstance(value, dlc.Tensor):
        return str(value.dtype), value.requires_grad, tuple(value.shape), value.detach().tolist()
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(v) for v in value]
    return type(value).__name__, value


def outcome(f, args):
    try:
        return plain(f(*args))
    except Exception as error:
        return type(error).__name__, str(error)


def script(case, compiler, phases=(1, 2, 3, 4)):
    """Three calls in each state, with the changes in between; all results."""
    case.restore()
    dlc.manual_seed(0)
    try:
        f = compiler(case.f)
        results = [outcome(f, case.args()) for _ in range(3)]
        for i in phases:
            case.change(i)
            results += [outcome(f, case.args()) for _ in range(3)]
        return results
    finally:
        case.restore()


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_a_change_is_seen(make):
    want, got = script(make(), lambda f: f), script(make(), dlc.compile)
    assert len({repr(r) for r in want}) > 1, "the change changes nothing"
    assert isinstance(want[0], tuple) and not want[0][0].endswith("Error"), want[0]
    for i, (a, b) in enumerate(zip(got, want)):
        assert a == b, f"call {i}: {a} instead of {b}"


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_a_change_before_the_second_call_is_seen(make):
    """The change comes when the function was met once only."""

    def short(compiler):
        case = make()
        case.restore()
        dlc.manual_seed(0)
        try:
            f = compiler(case.f)
            results = [outcome(f, case.args())]
            for i in (1, 2, 3):
                case.change(i)
                results.append(outcome(f, case.args()))
            return results
        finally:
            case.restore()

    assert short(dlc.compile) == short(lambda f: f)


@pytest.mark.parametrize("make", [c for c in CASES if c().unrelated], ids=lambda make: make.__name__)
def test_an_unrelated_change_costs_nothing(make):
    case = make()
    case.restore()
    compiled = dlc.compile(case.f)
    for _ in range(3):
        compiled(*case.args())
    before = dlc.compile_stats()
    want = plain(case.f(*case.args()))
    for i in range(5):
        case.unrelated(i)
        assert plain(compiled(*case.args())) == want
    after = dlc.compile_stats()
    assert after["compilations"] == before["compilations"]
    assert after["fallbacks"] == before["fallbacks"]
    assert after.get("captures", 0) == before.get("captures", 0)
    case.restore()
