"""MultiheadAttention and the transformer encoder against formulas in NumPy."""

import dlc
import numpy as np
import pytest
from dlc import nn


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def reference(m, q, k, v, mask):
    """(out, weights by head) for batch-first operands and a mask to add."""
    if m.in_proj_weight is not None:
        weights = np.split(m.in_proj_weight.detach().numpy(), 3)
    else:
        weights = [w.detach().numpy() for w in (m.q_proj_weight, m.k_proj_weight, m.v_proj_weight)]
    biases = np.split(m.in_proj_bias.detach().numpy(), 3)
    heads = [
        (x @ w.T + b).reshape(*x.shape[:2], m.num_heads, -1).swapaxes(1, 2)
        for x, w, b in zip((q, k, v), weights, biases)
    ]
    p = softmax(heads[0] @ heads[1].swapaxes(-1, -2) / np.sqrt(m.head_dim) + mask)
    out = (p @ heads[2]).swapaxes(1, 2).reshape(*q.shape[:2], -1)
    return out @ m.out_proj.weight.detach().numpy().T + m.out_proj.bias.detach().numpy(), p


def attention(**kwargs):
    dlc.manual_seed(0)
    m = nn.MultiheadAttention(8, 2, **kwargs)
    with dlc.no_grad():
        m.in_proj_bias.copy_(dlc.randn(24))
        m.out_proj.bias.copy_(dlc.randn(8))
    return m


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("mask", ["none", "bool", "float", "heads", "padding", "both"])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("width", [None, 6])
def test_attention(width, batch_first, mask, need_weights):
    m = attention(batch_first=batch_first, kdim=width, vdim=width)
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal(s).astype("f4") for s in ((3, 4, 8), (3, 5, width or 8), (3, 5, width or 8)))
    added, attn_mask, padding = np.zeros((3, 2, 4, 5)), None, None
    if mask in ("bool", "both"):
        attn_mask = np.triu(np.ones((4, 5), bool), 1)
        added = np.where(attn_mask, -np.inf, added)
    if mask in ("float", "heads"):
        attn_mask = rng.standard_normal((4, 5) if mask == "float" else (6, 4, 5)).astype("f4")
        added = added + attn_mask.reshape(-1, 2 if mask == "heads" else 1, 4, 5)
    if mask in ("padding", "both"):
        padding = np.arange(5) >= np.array([[5], [3], [4]])
        added = np.where(padding[:, None, None], -np.inf, added)
    want, p = reference(m, q, k, v, added)
    operands = [dlc.tensor(x if batch_first else x.swapaxes(0, 1)) for x in (q, k, v)]
    masks = {"attn_mask": attn_mask, "key_padding_mask": padding}
    masks = {n: None if x is None else dlc.tensor(x) for n, x in masks.items()}
    out, weights = m(*operands, need_weights=need_weights, **masks)
    got = out.detach().numpy()
    np.testing.assert_allclose(got if batch_first else got.swapaxes(0, 1), want, rtol=0, atol=2e-6)
    if not need_weights:
        assert weights is None
        return
    np.testing.assert_allclose(weights.detach().numpy(), p.mean(1), rtol=0, atol=1e-6)
    _, each = m(*operands, average_attn_weights=False, **masks)
    np.testing.assert_allclose(each.detach().numpy(), p, rtol=0, atol=1e-6)


def test_without_a_batch():
    m = attention()
    x = dlc.randn(5, 8)
    out, weights = m(x, x, x, key_padding_mask=dlc.tensor([False] * 4 + [True]))
    batched, same = m(x[:, None], x[:, None], x[:, None], key_padding_mask=dlc.tensor([[False] * 4 + [True]]))
    assert out.shape == (5, 8) and weights.shape == (5, 5)
    assert (out == batched[:, 0]).all() and (weights == same[0]).all() and (weights[:, 4] == 0).all()


def test_names_of_the_state():
    assert list(nn.MultiheadAttention(8, 2).state_dict()) == [
        "in_proj_weight",
        "in_proj_bias",
        "out_proj.weight",
        "out_proj.bias",
    ]
    assert list(nn.MultiheadAttention(8, 2, bias=False, kdim=4).state_dict()) == [
        "q_proj_weight",
        "k_proj_weight",
        "v_proj_weight",
        "out_proj.weight",
    ]


def test_bad_sizes():
    with pytest.raises(AssertionError, match="`embed_dim` 9 is not divisible by `num_heads` 2"):
        nn.MultiheadAttention(9, 2)
    with pytest.raises(NotImplementedError, match="`add_bias_kv` and `add_zero_attn`"):
        nn.MultiheadAttention(8, 2, add_zero_attn=True)
    x = dlc.randn(3, 1, 8)
    with pytest.raises(RuntimeError, match="`is_causal` says what `attn_mask` is"):
        nn.MultiheadAttention(8, 2)(x, x, x, is_causal=True)


@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder(norm_first):
    dlc.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=norm_first)
    model = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8))
    x = dlc.randn(3, 5, 8)
    mask = dlc.tensor(np.triu(np.full((5, 5), -np.inf, "f4"), 1))

    def step(x):
        for one in model.layers:
            y = one.self_attn(*(one.norm1(x) if norm_first else x,) * 3, attn_mask=mask)[0] + x
            y = y if norm_first else one.norm1(y)
            z = y + one.linear2(nn.functional.gelu(one.linear1(one.norm2(y) if norm_first else y)))
            x = z if norm_first else one.norm2(z)
        return model.norm(x)

    want = step(x)
    for causal in (False, True):
        np.testing.assert_allclose(model(x, mask, is_causal=causal).detach().numpy(), want.detach().numpy(), atol=3e-6)
    compiled = dlc.compile(model)
    np.testing.assert_allclose(compiled(x, mask).detach().numpy(), want.detach().numpy(), atol=3e-6)
    model(x, mask).sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    assert (model(x)[:, 0] != model(x, mask)[:, 0]).any()
