"""The programs that twins are tested with, compiled: each call gives the result, log and traceback of plain Python, be
it the first, which is captured, or a later one, which may be replayed.
"""

import os
import sys
from functools import reduce
from itertools import accumulate

import dlc
import pytest

sys.path.insert(0, os.path.dirname(__file__))
import twin_checks as checks  # noqa: E402
import twin_random  # noqa: E402
import twin_reference as reference  # noqa: E402

CALLS = 3
pytestmark = pytest.mark.filterwarnings("ignore::SyntaxWarning")


def differences(name):
    one, other = checks.load(name), checks.load(name)
    different = {}
    for function in one.PROGRAMS:
        compiled = dlc.compile(getattr(other, function.__name__))
        for call in range(CALLS):
            one.log.clear()
            other.log.clear()
            plain, ours = reference.outcome(function), reference.outcome(compiled)
            if repr(plain) != repr(ours) or one.log != other.log:
                different[f"{function.__name__}, call {call}"] = (plain, ours, list(one.log), list(other.log))
                break
    return len(one.PROGRAMS), different


@pytest.mark.parametrize("name", ["twin_programs", "twin_programs_flow"])
def test_programs(name):
    count, different = differences(name)
    assert not different and count > 50


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_random_programs(seed, tmp_path):
    path = tmp_path / "random_programs.py"
    path.write_text(twin_random.programs(seed=seed, count=40))
    count, different = differences(str(path))
    assert not different and count == 40


def test_workloads():
    one, other = checks.load("twin_workloads"), checks.load("twin_workloads")
    for function in one.WORKLOADS:
        compiled = dlc.compile(getattr(other, function.__name__))
        for _ in range(CALLS):
            assert repr(reference.outcome(compiled)) == repr(reference.outcome(function)), function.__name__


class Number:
    def __add__(self, other):
        return "add", other

    def __radd__(self, other):
        return "radd", other

    def __rmul__(self, other):
        return "rmul", other


class Index:
    def __index__(self):
        return 2


class Sub(list):
    pass


class Adding(list):
    def __add__(self, other):
        return "added", other


items, table = [1, 2], {}


def list_plus_number():
    return items + Number(), items * Number(), Number() + items


def list_plus_number_in_place():
    x, y = [1], (1,)
    x += Number()
    y += Number()
    return x, y


def subclasses_of_list():
    x = Sub([1])
    x += [4]
    return x, Sub([1]) + [2], [1] + Sub([2]), Sub([1]) * 2, 2 * Sub([3]), Adding([1]) + [1], [1] + Adding([2])


def repeated():
    x = [1]
    x *= Index()
    return x, items * Index(), Index() * items, "ab" * Index()


def list_plus_int():
    return items + 5


def list_times_text():
    return Sub(items) * "x"


def in_an_int():
    return "x" in 5


def in_a_number():
    return 1 in Number()


def reduced():
    started = reduce(lambda a, b: {**a, b: 1}, [1, 2], table)
    return reduce(lambda a, b: b, [], int), started, list(accumulate([1, 2], lambda a, b: a, initial=int))


@pytest.mark.parametrize(
    "function",
    [
        list_plus_number,
        list_plus_number_in_place,
        subclasses_of_list,
        repeated,
        list_plus_int,
        list_times_text,
        in_an_int,
        in_a_number,
        reduced,
    ],
)
def test_operators_ask_in_the_interpreters_order(function):
    compiled = dlc.compile(function)
    for _ in range(CALLS):
        assert repr(reference.outcome(compiled)) == repr(reference.outcome(function))
