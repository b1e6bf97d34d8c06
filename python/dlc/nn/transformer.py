"""Multi-head attention and the transformer encoder."""

import copy

from dlc import _C
from dlc._errors import error
from dlc.nn import functional as F
from dlc.nn import init
from dlc.nn.activations import Dropout
from dlc.nn.containers import ModuleList
from dlc.nn.layers import LayerNorm, Linear
from dlc.nn.module import Module
from dlc.nn.parameter import Parameter


def _added(mask, dtype):
    """A mask as numbers to add to scores; in a bool mask, True is what may not be seen."""
    if mask is None or mask.dtype != _C.bool:
        return mask
    return _C.zeros(mask.shape, dtype=dtype).masked_fill(mask, -float("inf"))


class MultiheadAttention(Module):
    """Attention of `num_heads` heads between projections; (length, batch, features) unless `batch_first`."""

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise error(
                ValueError, "MultiheadAttention: `embed_dim` and `num_heads` must be positive", "pass positive sizes"
            )
        if embed_dim % num_heads:
            raise error(
                AssertionError,
                f"MultiheadAttention: `embed_dim` {embed_dim} is not divisible by `num_heads` {num_heads}",
                "choose a number of heads that divides it",
            )
        if add_bias_kv or add_zero_attn:
            raise error(
                NotImplementedError,
                "MultiheadAttention: `add_bias_kv` and `add_zero_attn` are not supported",
                "append the extra keys and values to `key` and `value`",
            )
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.dropout, self.batch_first = dropout, batch_first
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        widths = {"in_proj_weight": None, "q_proj_weight": None, "k_proj_weight": None, "v_proj_weight": None}
        if self._qkv_same_embed_dim:
            widths["in_proj_weight"] = (3 * embed_dim, embed_dim)
        else:
            widths["q_proj_weight"] = (embed_dim, embed_dim)
            widths["k_proj_weight"] = (embed_dim, self.kdim)
            widths["v_proj_weight"] = (embed_dim, self.vdim)
        for name, shape in widths.items():
            parameter = None if shape is None else Parameter(_C.empty(shape, device=device, dtype=dtype))
            self.register_parameter(name, parameter)
        in_bias = Parameter(_C.empty((3 * embed_dim,), device=device, dtype=dtype)) if bias else None
        self.register_parameter("in_proj_bias", in_bias)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self._reset_parameters()

    def _reset_parameters(self):
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)

    def _projected(self, query, key, value):
        """The three projections, with one product where all have one input."""
        if self._qkv_same_embed_dim:
            if query is key and key is value:
                return F.linear(query, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
            weights = self.in_proj_weight.chunk(3)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        return [F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]

    def _mask(self, attn_mask, key_padding_mask, batch, dtype):
        """Both masks as one to add, of (batch, heads, queries, keys) or what broadcasts to it; None if there is none."""
        mask = _added(attn_mask, dtype)
        if mask is not None and mask.dim() == 3:
            mask = mask.view(batch, self.num_heads, *mask.shape[1:])
        padding = _added(key_padding_mask, dtype)
        if padding is None:
            return mask
        padding = padding.view(batch, 1, 1, -1)
        return padding if mask is None else mask + padding

    def forward(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        """(result, weights of the keys or None); the weights are the mean over heads, or with `average_attn_weights`
        False those of each head. Without `need_weights` no matrix of queries and keys is made."""
        if is_causal and attn_mask is None:
            raise error(
                RuntimeError,
                "MultiheadAttention: `is_causal` says what `attn_mask` is, but there is none",
                "pass the causal mask too",
            )
        batched = query.dim() == 3
        if not batched:
            single = query is key and key is value
            query = query.unsqueeze(1)
            key, value = (query, query) if single else (key.unsqueeze(1), value.unsqueeze(1))
            if key_padding_mask is not None:
                key_padding_mask = key_padding_mask.unsqueeze(0)
        q, k, v = self._projected(query, key, value)
        if not (self.batch_first and batched):
            q, k, v = (x.transpose(0, 1) for x in (q, k, v))
        batch, length, _ = q.shape
        q, k, v = (x.view(batch, x.shape[1], self.num_heads, self.head_dim).transpose(1, 2) for x in (q, k, v))
        dropout = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scores = q @ k.transpose(-2, -1) * (self.head_dim**-0.5)
            mask = self._mask(attn_mask, key_padding_mask, batch, q.dtype)
            weights = F.dropout(F.softmax(scores if mask is None else scores + mask, -1), dropout)
            out = weights @ v
        else:
            causal = is_causal and key_padding_mask is None
            mask = None if causal else self._mask(attn_mask, key_padding_mask, batch, q.dtype)
            out = F.scaled_dot_product_attention(q, k, v, mask, dropout, causal)
        out = self.out_proj(out.transpose(1, 2).reshape(batch, length, self.embed_dim))
        if not (self.batch_first and batched):
            out = out.transpose(0, 1)
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if batched:
            return out, weights
        return out.squeeze(1), None if weights is None else weights.squeeze(0)


_ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


class TransformerEncoderLayer(Module):
    """Self-attention and a network of two layers, each added to its input and normalised (first, if `norm_first`)."""

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation=F.relu,
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        made = {"device": device, "dtype": dtype}
        if isinstance(activation, str):
            if activation not in _ACTIVATIONS:
                raise error(
                    RuntimeError,
                    f"TransformerEncoderLayer: `activation` is '{activation}'",
                    "use 'relu', 'gelu' or a function",
                )
            activation = _ACTIVATIONS[activation]
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, **made)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **made)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **made)
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)
        self.activation = activation

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        x = src
        if self.norm_first:
            x = x + self._attended(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._fed(self.norm2(x))
        x = self.norm1(x + self._attended(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._fed(x))

    def _attended(self, x, mask, padding, is_causal):
        out, _ = self.self_attn(
            x, x, x, key_padding_mask=padding, need_weights=False, attn_mask=mask, is_causal=is_causal
        )
        return self.dropout1(out)

    def _fed(self, x):
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))


class TransformerEncoder(Module):
    """`num_layers` copies of a layer, one after the other, and a last normalisation if `norm` is given."""

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)
