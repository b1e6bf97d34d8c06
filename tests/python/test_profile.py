"""dlc.profile: which steps it counts, with which bytes and operations."""

import dlc


def test_counts_steps_bytes_and_operations():
    def f(x, w, b):
        return dlc.softmax(x @ w + b, -1)

    compiled = dlc.compile(f)
    x, w, b = dlc.randn(6, 8), dlc.randn(8, 10), dlc.randn(10)
    want = compiled(x, w, b)
    with dlc.profile() as p:
        for _ in range(3):
            assert dlc.equal(compiled(x, w, b), want)
    assert p.steps and all(s.calls == 3 for s in p.steps)
    assert sum(s.flops for s in p.steps) >= 2 * 6 * 8 * 10
    assert sum(s.bytes for s in p.steps) >= 4 * (6 * 8 + 8 * 10 + 10 + 6 * 10)
    assert 0 < sum(s.seconds for s in p.steps) < p.seconds
    text = p.table(calls=3)
    assert all(s.name in text for s in p.steps) and "outside of them" in text


def test_a_profile_starts_anew_and_ends_with_its_block():
    compiled = dlc.compile(lambda x: (x.exp() + 1).log().sum())
    compiled(dlc.ones(7))
    with dlc.profile() as first:
        compiled(dlc.ones(7))
    compiled(dlc.ones(7))
    with dlc.profile() as second:
        pass
    assert first.steps and not second.steps and "steps 0.0 us" in str(second)


def test_convolution_and_its_gradients_have_operations():
    conv = dlc.nn.Conv2d(3, 4, 3, stride=2, bias=False)

    @dlc.compile
    def step(x):
        conv.zero_grad()
        y = conv(x)
        (y * y).sum().backward()
        return y

    x = dlc.randn(2, 3, 9, 9, requires_grad=True)
    y = step(x)
    with dlc.profile() as p:
        step(x)
    one = 2 * y.numel() * 3 * 9
    assert sum(s.flops for s in p.steps) >= 3 * one


def test_packed_convolutions_have_operations():
    w = dlc.randn(16, 3, 3, 3)
    compiled = dlc.compile(lambda x: (dlc.nn.functional.conv2d(x, w, padding=1).relu() * 2).exp())
    x = dlc.randn(1, 3, 30, 30)
    y = compiled(x)
    with dlc.profile() as p:
        compiled(x)
    assert sum(s.flops for s in p.steps if s.kind == "library") == 2 * y.numel() * 3 * 9


def test_sizes_that_vary_are_rows_of_their_own():
    compiled = dlc.compile(lambda x: (x * 2 + 1).relu() - x, dynamic=True)
    compiled(dlc.ones(4))
    with dlc.profile() as p:
        for n in (5, 9, 9):
            compiled(dlc.ones(n))
    assert sorted((s.calls, s.bytes) for s in p.steps) == [(1, 2 * 4 * 5), (2, 2 * 4 * 9)]


def test_kernels_have_operations():
    compiled = dlc.compile(lambda x: ((x + 1) * x - 3).sum(1))
    compiled(dlc.ones(40, 50))
    with dlc.profile() as p:
        compiled(dlc.ones(40, 50))
    assert [(s.kind, s.flops, s.bytes) for s in p.steps] == [("kernel", 4 * 40 * 50, 4 * (40 * 50 + 40))]


def test_attention_has_operations():
    compiled = dlc.compile(lambda q, k, v: dlc.nn.functional.scaled_dot_product_attention(q, k, v) + 1)
    q, k, v = dlc.randn(1, 2, 5, 8), dlc.randn(1, 2, 7, 8), dlc.randn(1, 2, 7, 8)
    compiled(q, k, v)
    with dlc.profile() as p:
        compiled(q, k, v)
    assert sum(s.flops for s in p.steps) >= 4 * q.numel() * 7
