# ruff: noqa: E501  one expression a line
"""Numbers that vary from call to call: each expression of an int `i`, a float `s` and a tensor `x` gives in six calls what
plain Python gives, whether the calls replay with the numbers as operands, learn anew or run Python."""

import collections
import functools
import itertools
import math
import operator

import dlc
import pytest

EXPRESSIONS = r"""
f"{i} {s:.1f}"
"%d %s" % (i, s)
str(i)+repr(s)
[0]*i
list(range(i))
(1,2,3,4,5,6,7)[i]
[1,2,3,4,5,6,7,8][-i-1]
"abcdefgh"[i]
{k: k for k in range(8)}[i]
{0:1,1:2}.get(i, 9)
i in (1,3,5)
i in [1,3,5]
i in {1,3,5}
i == 2
i != 2
i < 3
i >= 3
i is None
i == 'a'
(i,) == (2,)
[i] == [2]
(i, s) < (2, 1.0)
s == 1
s < 1
s != 1.0
s > i
i + s
i - s
i * s
s - i
-i
-s
+i
~i
abs(i - 3)
abs(s - 1)
i / 2
i // 2
i % 3
i ** 2
2 ** i
i / (s + 1)
s // 0.7
s % 0.7
s ** 2
2.0 ** s
i << 1
i >> 1
i | 1
i & 1
i ^ 3
True + i
i * True
divmod(i, 3)
divmod(s, 0.4)
pow(i, 2)
pow(2, i, 5)
round(s)
round(s, 1)
int(s)
float(i)
bool(i)
bool(s)
min(i, 3)
max(i, 3)
min([i, s])
sum([i, s, 1])
sorted([i, 2, s])
any([i])
all([i, s])
math.sqrt(s)
math.floor(s)
math.isnan(s)
math.pow(i, 2)
math.gcd(i, 4)
isinstance(i, int)
isinstance(s, float)
type(i) is int
type(s).__name__
isinstance(i, bool)
hash(i)
hash((i, s))
i.bit_length()
s.is_integer()
i.real
s.hex()
dict(a=i)['a']
dict([(i, s)])
{i: s}
{i}
frozenset([i])
tuple([i])
[*range(i)]
[j * i for j in range(3)]
sum((j for j in range(i)))
list(map(lambda j: j + i, [1]))
list(zip([i], [s]))
list(enumerate([s], i))
x * i
x * s
x + i
x / (i + 1)
x ** i
x - s
i - x
s * x
x // (s + 1)
x % (i + 1)
x > s
x == i
x.reshape(2, 1).expand(2, i + 1).shape
x.repeat(i + 1).shape
dlc.zeros(i + 1, 2).shape
dlc.full((2,), s)
dlc.arange(i)
dlc.ones(i).sum()
x[:i]
x[i % 2]
x[i % 2:]
x[..., i % 2]
dlc.stack([x] * (i + 1)).shape
x.narrow(0, 0, i % 2 + 1)
x.clamp(min=s)
x.sum() * s
dlc.where(x > s, x, s)
x.roll(i)
x.mul(s).add(i)
x.pow(s)
dlc.tensor([i, s])
dlc.tensor(i)
x.clone().fill_(s)
x.clone().add_(x, alpha=s)
x.clone().mul_(i)
x.softmax(-1) * s
dlc.nn.functional.dropout(x, 0.0 * s)
dlc.nn.functional.pad(x, (i, 1)).shape
x.view(-1, i % 2 + 1).shape
operator.itemgetter(i % 2)([5, 6])
operator.add(i, s)
functools.reduce(operator.mul, [i, s, 2])
list(itertools.islice(range(9), i))
list(itertools.repeat(i, 2))
collections.Counter([i, i, 1])
collections.deque([i], maxlen=3)
collections.OrderedDict([(i, 1)])
(lambda a, b=i: a + b)(s)
(lambda **k: k)(v=i)
[i, s][i % 2]
i if s > 1 else s
i and s
i or s
not i
'x' * i
b'ab'[:i]
'a,b,c'.split(',', i)
','.join((str(j) for j in range(i)))
'a'.zfill(i)
chr(65 + i)
bytes(i)
bytearray(i)
setattr(x.clone(), 'q', i)
slice(i).stop
range(i).stop
complex(i, s)
i.__add__(1)
i.__class__
int.__mul__(i, 2)
s.__gt__(0.5)
tuple((j for j in (i, s)))
[i] * 2
(i,) * 2
(i,) + (s,)
[i] + [s]
[[i], [s]]
{'a': [i]}
x.new_zeros(i + 1).shape
x.size(0) * i
divmod(x.shape[0] * i, 3)
x.shape[0] == i
x.numel() + i
(x.shape[0], i) == (2, 2)
len(range(i))
i in range(3)
"""


def results(f):
    x = dlc.tensor([1.0, 2.0])
    found = []
    for i in range(6):
        try:
            found.append(repr(f(x, i, i * 0.5)))
        except Exception as error:
            found.append(repr(error))
    return found


@pytest.mark.parametrize("expression", EXPRESSIONS.strip().splitlines())
def test_expression(tmp_path, expression):
    path = tmp_path / "program.py"
    path.write_text(f"def f(x, i, s):\n    return {expression}\n")
    scope = {m.__name__: m for m in (dlc, collections, functools, itertools, math, operator)}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    compiled = dlc.compile(scope["f"])
    assert results(compiled) == results(scope["f"]), compiled.explain()


def test_numbers_are_operands():
    """Arithmetic and comparisons of numbers that vary need no new program for each value."""

    def f(x, i, s):
        return x * (s * 2 + i) if i + 1 > s else x

    compiled = dlc.compile(f)
    results(compiled)
    before = dlc.compiler.compile_stats()["replays"]
    results(compiled)
    assert dlc.compiler.compile_stats()["replays"] - before >= 5, compiled.explain()
