"""Transformers: an encoder, one decoding step with a cache that grows, and a training step."""

import dlc as torch
import dlc.nn.functional as F
import numpy as np
from dlc import nn

from models import Program


class Attention(nn.Module):
    """Self-attention; with a cache, of the new tokens over the cached ones and themselves."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, cache=None):
        b, t, w = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, t, w)), (k, v)


class StoredLinear(nn.Module):
    """A Linear whose weight is kept as bfloat16, or as int8 with a factor for each row, and widened where it is used."""

    def __init__(self, linear, kind):
        super().__init__()
        weight, scale = linear.weight.detach(), None
        if kind == "bf16":
            weight = weight.to(torch.bfloat16)
        else:
            scale = weight.abs().amax(1, keepdim=True) / 127
            weight = (weight / scale).round().to(torch.int8)
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)
        self.bias = linear.bias

    def forward(self, x):
        weight = self.weight.to(x.dtype)
        return F.linear(x, weight if self.scale is None else weight * self.scale, self.bias)


def store_weights(module, kind):
    """Replaces every Linear below `module` by one that keeps its weight as `kind`: "bf16" or "int8"."""
    for name, child in list(module.named_children()):
        if isinstance(child, nn.Linear):
            setattr(module, name, StoredLinear(child, kind))
        else:
            store_weights(child, kind)


class EncoderLayer(nn.Module):
    """Normalised after each residual sum, as in BERT."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads, False)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = self.norm1(x + self.attention(x)[0])
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Encoder(nn.Module):
    def __init__(self, vocabulary, layers, width, heads, length):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(length, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList([EncoderLayer(width, heads) for _ in range(layers)])

    def forward(self, tokens):
        x = self.norm(self.token(tokens) + self.position(torch.arange(tokens.shape[1])))
        for layer in self.layers:
            x = layer(x)
        return x


class DecoderLayer(nn.Module):
    """Normalised input, as in GPT-2."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.attention = Attention(width, heads, causal)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, cache=None):
        y, cache = self.attention(self.norm1(x), cache)
        x = x + y
        return x + self.down(F.gelu(self.up(self.norm2(x)))), cache


class Decoder(nn.Module):
    """Logits of the tokens. With caches (keys and values a layer) the new caches too."""

    def __init__(self, vocabulary, layers, width, heads, length, causal):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(length, width)
        self.layers = nn.ModuleList([DecoderLayer(width, heads, causal) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens, *caches):
        start = caches[0].shape[2] if caches else 0
        x = self.token(tokens) + self.position(torch.arange(start, start + tokens.shape[1]))
        grown = []
        for i, layer in enumerate(self.layers):
            x, cache = layer(x, caches[2 * i : 2 * i + 2] if caches else None)
            grown += cache
        logits = self.head(self.norm(x))
        return (logits, *grown) if caches else logits


def encoder(layers=6, width=384, heads=12, batch=1, length=128):
    """Transformer encoder, 6 layers, width 384, 12 heads, 1 x 128 tokens."""
    module = Encoder(1000, layers, width, heads, max(512, length))
    return Program(module, module, (_tokens(1000, batch, length),), dynamic={0: (0, 1)})


def decode(layers=6, width=512, heads=8, batch=1, length=100, steps=32, weights="f32"):
    """One decoding step, 6 layers, width 512, a cache of 100 positions that grows."""
    module = Decoder(4096, layers, width, heads, length + steps + 1, False)
    rng = np.random.default_rng(3)
    shape = (batch, heads, length, width // heads)
    caches = [rng.standard_normal(shape, dtype=np.float32) for _ in range(2 * layers)]
    return Program(
        module, module, (_tokens(4096, batch, 1), *caches), period=steps,
        feedback={i: i for i in range(1, 2 * layers + 1)}, dynamic={i: (2,) for i in range(1, 2 * layers + 1)},
        finish=None if weights == "f32" else lambda: store_weights(module, weights),
    )  # fmt: skip


def train_gpt(layers=4, width=128, heads=4, batch=8, length=64):
    """A training step of a GPT of 4 layers, width 128, 8 x 64 tokens, AdamW."""
    vocabulary = 96
    module = Decoder(vocabulary, layers, width, heads, length, True)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4, weight_decay=0.1)

    def step(x, y):
        loss = F.cross_entropy(module(x).flatten(0, 1), y.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    text = _tokens(vocabulary, batch, length + 1)
    inputs = (np.ascontiguousarray(text[:, :-1]), np.ascontiguousarray(text[:, 1:]))
    return Program(module, step, inputs)


def _tokens(vocabulary, *shape):
    return np.random.default_rng(1).integers(0, vocabulary, shape)
