"""Modules: registration, state, hooks, modes, containers; layers and losses against checked values."""

import copy
import math
from collections import OrderedDict

import dlc
import dlc.nn.functional as F
import numpy as np
import pytest
from dlc import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.norm = nn.BatchNorm1d(2)
        self.scale = nn.Parameter(dlc.ones(1))
        self.register_buffer("count", dlc.zeros(1))
        self.register_buffer("cache", dlc.zeros(1), persistent=False)

    def forward(self, x):
        return self.norm(self.fc(x)) * self.scale


def test_registration_and_walking():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == ["scale", "fc.weight", "fc.bias", "norm.weight", "norm.bias"]
    assert [n for n, _ in net.named_buffers()] == [
        "count",
        "cache",
        "norm.running_mean",
        "norm.running_var",
        "norm.num_batches_tracked",
    ]
    assert [n for n, _ in net.named_modules()] == ["", "fc", "norm"]
    assert [n for n, _ in net.named_children()] == ["fc", "norm"]
    assert net.get_parameter("fc.weight") is net.fc.weight and net.get_submodule("fc") is net.fc
    shared = nn.Module()
    shared.a, shared.b = net.fc, net.fc
    assert len(list(shared.parameters())) == 2 and list(shared.state_dict()) == [
        "a.weight",
        "a.bias",
        "b.weight",
        "b.bias",
    ]


def test_assignment_rules():
    net = Net()
    with pytest.raises(TypeError):
        net.scale = dlc.ones(1)
    net.scale = None
    assert net.scale is None and "scale" not in net.state_dict()
    net.count = dlc.ones(2)
    assert net.state_dict()["count"].tolist() == [1, 1]
    with pytest.raises(TypeError):
        net.fc = 3
    del net.fc
    assert not hasattr(net, "fc")
    with pytest.raises(KeyError):
        net.register_parameter("a.b", None)
    with pytest.raises(KeyError):
        net.register_buffer("forward", dlc.ones(1))
    with pytest.raises(AttributeError):
        _ = net.missing
    net.plain = [1]
    assert net.plain == [1]

    class Early(nn.Module):
        def __init__(self):
            self.p = nn.Parameter(dlc.ones(1))

    with pytest.raises(AttributeError):
        Early()


def test_state_dict_round_trip():
    a, b = Net(), Net()
    state = a.state_dict()
    assert isinstance(state, OrderedDict) and "cache" not in state
    assert state["fc.weight"].data_ptr() == a.fc.weight.data_ptr()
    assert repr(b.load_state_dict(state)) == "<All keys matched successfully>"
    assert dlc.equal(a.fc.weight, b.fc.weight) and b.fc.weight.data_ptr() != a.fc.weight.data_ptr()
    state.pop("scale")
    state["extra"] = dlc.ones(1)
    with pytest.raises(RuntimeError, match='(?s)Missing key.*"scale".*Unexpected key.*"extra"'):
        b.load_state_dict(state)
    result = b.load_state_dict(state, strict=False)
    assert result.missing_keys == ["scale"] and result.unexpected_keys == ["extra"]
    state["fc.bias"] = dlc.ones(7)
    with pytest.raises(RuntimeError, match="size mismatch for fc.bias"):
        b.load_state_dict(state, strict=False)


def test_modes_and_gradients():
    net = Net()
    assert net.training and not net.eval().norm.training and net.train().fc.training
    net(dlc.rand(4, 3)).sum().backward()
    assert net.fc.weight.grad is not None
    net.zero_grad(set_to_none=False)
    assert net.fc.weight.grad.abs().sum().item() == 0
    net.zero_grad()
    assert net.fc.weight.grad is None
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_dtype_conversion():
    net = Net().double()
    assert net.fc.weight.dtype == dlc.float64 and net.norm.num_batches_tracked.dtype == dlc.int64
    weight = net.fc.weight
    net.to(dlc.float16)
    assert net.fc.weight is weight and weight.dtype == dlc.float16
    assert net.to("cpu") is net
    with pytest.raises(RuntimeError):
        net.cuda()
    with pytest.raises(TypeError):
        net.to(dlc.int64)


def test_apply_and_deepcopy():
    net = Net()
    seen = []
    net.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "BatchNorm1d", "Net"]
    other = copy.deepcopy(net)
    assert isinstance(other.fc.weight, nn.Parameter) and other.fc.weight is not net.fc.weight
    with dlc.no_grad():
        other.fc.weight.add_(1)
    assert not dlc.equal(other.fc.weight, net.fc.weight)


def test_forward_hooks():
    layer = nn.Linear(1, 1, bias=False)
    layer.weight.data.fill_(2.0)
    calls = []
    pre = layer.register_forward_pre_hook(lambda m, args: calls.append("pre") or (args[0] + 1,))
    post = layer.register_forward_hook(lambda m, args, out: out + 100)
    assert layer(dlc.ones(1)).item() == 104 and calls == ["pre"]
    pre.remove()
    assert layer(dlc.ones(1)).item() == 102
    post.remove()
    assert layer(dlc.ones(1)).item() == 2
    with layer.register_forward_hook(lambda m, a, k, o: k["input"] * o, with_kwargs=True):
        assert layer(input=dlc.ones(1) * 3).item() == 18


def test_backward_hooks():
    layer = nn.Linear(2, 1, bias=False)
    layer.weight.data.fill_(2.0)
    seen = []
    handle = layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi[0].tolist(), go[0].tolist())))
    x = dlc.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    assert seen == [([[2, 2]], [[1]])] and x.grad.tolist() == [[2, 2]]
    handle.remove()
    double = layer.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,))
    layer(x).sum().backward()
    assert x.grad.tolist() == [[6, 6]]
    double.remove()
    seen.clear()
    layer.register_full_backward_hook(lambda m, gi, go: seen.append(gi))
    layer(dlc.ones(1, 2)).sum().backward()
    assert seen == [(None,)]


def test_containers():
    seq = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert len(seq) == 3 and isinstance(seq[1], nn.ReLU) and seq[-1] is seq[2] and len(seq[:2]) == 2
    assert list(seq.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    seq.append(nn.Identity())
    assert seq(dlc.ones(5, 2)).shape == (5, 1)
    named = nn.Sequential(OrderedDict(a=nn.Identity(), b=nn.Flatten()))
    assert named.b is named[1]
    items = nn.ModuleList([nn.Linear(1, 1) for _ in range(3)])
    items.insert(0, nn.Identity())
    del items[1]
    assert (
        len(items) == 3
        and isinstance(items[0], nn.Identity)
        and [n for n, _ in items.named_children()] == ["0", "1", "2"]
    )
    with pytest.raises(IndexError):
        items[3]
    table = nn.ModuleDict({"x": nn.ReLU()})
    table["y"] = nn.Tanh()
    assert list(table) == ["x", "y"] and "x" in table and table.pop("x") is not None and len(table) == 1
    params = nn.ParameterList([dlc.ones(1), dlc.zeros(2)])
    assert len(params) == 2 and isinstance(params[1], nn.Parameter) and len(list(params.parameters())) == 2


def test_repr():
    assert repr(nn.Linear(2, 3)) == "Linear(in_features=2, out_features=3, bias=True)"
    assert (
        repr(nn.Sequential(nn.ReLU(), nn.Dropout(0.1)))
        == "Sequential(\n  (0): ReLU()\n  (1): Dropout(p=0.1, inplace=False)\n)"
    )


def test_linear_and_initial_range():
    dlc.manual_seed(0)
    layer = nn.Linear(100, 50)
    bound = 1 / math.sqrt(100)
    for p in layer.parameters():
        assert p.abs().max().item() <= bound and p.abs().max().item() > 0.8 * bound
    x = dlc.rand(7, 100)
    assert np.allclose(
        layer(x).detach().numpy(), x.numpy() @ layer.weight.detach().numpy().T + layer.bias.detach().numpy(), atol=1e-5
    )


def test_conv_pool_flatten():
    x = dlc.arange(16.0).view(1, 1, 4, 4)
    conv = nn.Conv2d(1, 1, 2, stride=2, bias=False)
    conv.weight.data.fill_(1)
    assert conv(x).tolist() == [[[[10, 18], [42, 50]]]]
    assert nn.MaxPool2d(2)(x).tolist() == [[[[5, 7], [13, 15]]]]
    assert nn.AvgPool2d(2)(x).tolist() == [[[[2.5, 4.5], [10.5, 12.5]]]]
    assert nn.AdaptiveAvgPool2d(1)(x).item() == 7.5 and nn.AdaptiveAvgPool2d((2, None))(x).shape == (1, 1, 2, 4)
    assert nn.Flatten()(x).shape == (1, 16) and nn.Unflatten(1, (4, 4))(nn.Flatten()(x)).shape == (1, 4, 4)
    assert nn.Conv2d(1, 2, 3, padding="same")(x).shape == (1, 2, 4, 4)
    assert nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular")(x).shape == (1, 2, 4, 4)
    with pytest.raises(ValueError):
        nn.Conv2d(3, 4, 1, groups=2)


def test_batch_norm_statistics():
    norm = nn.BatchNorm1d(2)
    x = dlc.tensor([[1.0, 10.0], [3.0, 30.0]])
    y = norm(x)
    assert np.allclose(y.detach().numpy(), [[-1, -1], [1, 1]], atol=1e-4)
    assert np.allclose(norm.running_mean.numpy(), [0.2, 2.0]) and np.allclose(
        norm.running_var.numpy(), [0.9 + 0.1 * 2, 0.9 + 0.1 * 200]
    )
    assert norm.num_batches_tracked.item() == 1
    norm.eval()
    assert np.allclose(norm(x)[0, 0].item(), (1 - 0.2) / math.sqrt(1.1 + 1e-5)) and norm.num_batches_tracked.item() == 1
    with pytest.raises(ValueError):
        nn.BatchNorm2d(2)(x)


def test_norm_layers():
    x = dlc.tensor([[1.0, 2.0, 3.0, 6.0]])
    mean, std = 3.0, math.sqrt(3.5)
    assert np.allclose(nn.LayerNorm(4)(x).detach().numpy(), (x.numpy() - mean) / std, atol=1e-4)
    assert np.allclose(nn.RMSNorm(4, eps=0.0)(x).detach().numpy(), x.numpy() / math.sqrt(12.5), atol=1e-5)
    group = nn.GroupNorm(2, 4)(x)
    assert np.allclose(group.detach().numpy(), [[-1, 1, -1, 1]], atol=1e-3)


def test_embedding():
    layer = nn.Embedding(5, 3, padding_idx=1)
    assert layer.weight[1].abs().sum().item() == 0
    index = dlc.tensor([[0, 1], [4, 4]])
    out = layer(index)
    assert out.shape == (2, 2, 3) and dlc.equal(out[1, 0], layer.weight[4])
    out.sum().backward()
    assert layer.weight.grad.tolist() == [[1] * 3, [0] * 3, [0] * 3, [0] * 3, [2] * 3]
    with pytest.raises(IndexError):
        layer(dlc.tensor([5]))


def test_dropout():
    dlc.manual_seed(0)
    x = dlc.ones(1000, requires_grad=True)
    y = F.dropout(x, 0.5, True)
    y.sum().backward()
    assert dlc.equal(y != 0, x.grad != 0) and set(y.tolist()) == {0.0, 2.0} and 400 < (y != 0).sum().item() < 600
    layer = nn.Dropout(0.5).eval()
    assert layer(x) is x
    with pytest.raises(ValueError):
        nn.Dropout(1.5)


def test_activations():
    x = dlc.tensor([-2.0, 0.0, 2.0])
    checked = {
        nn.ReLU(): [0, 0, 2],
        nn.LeakyReLU(0.1): [-0.2, 0, 2],
        nn.Sigmoid(): [0.11920292, 0.5, 0.88079708],
        nn.Tanh(): [-0.96402758, 0, 0.96402758],
        nn.GELU(): [-0.04550026, 0, 1.95449974],
        nn.GELU("tanh"): [-0.04540229, 0, 1.95459771],
        nn.SiLU(): [-0.23840584, 0, 1.76159416],
        nn.ELU(): [-0.86466472, 0, 2],
        nn.Softplus(): [0.12692801, 0.69314718, 2.12692801],
        nn.Hardtanh(): [-1, 0, 1],
        nn.ReLU6(): [0, 0, 2],
        nn.Hardsigmoid(): [0.16666667, 0.5, 0.83333333],
        nn.Hardswish(): [-0.33333333, 0, 1.66666667],
        nn.Softmax(0): [0.01587624, 0.11731043, 0.86681333],
        nn.LogSoftmax(0): [-4.14293163, -2.14293163, -0.14293163],
    }
    for layer, want in checked.items():
        assert np.allclose(layer(x).numpy(), want, atol=1e-6), repr(layer)
    y = x.clone()
    assert nn.ReLU(inplace=True)(y) is y and y.tolist() == [0, 0, 2]
    assert nn.Hardswish(inplace=True)(y) is y and np.allclose(y.numpy(), [0, 0, 1.66666667])
    assert nn.Hardsigmoid(inplace=True)(y) is y and np.allclose(y.numpy(), [0.5, 0.5, 0.77777778])


def test_losses():
    x = dlc.tensor([[1.0, 2.0, 0.5], [0.1, -1.0, 3.0]])
    target = dlc.tensor([1, 2])
    assert nn.CrossEntropyLoss()(x, target).item() == pytest.approx(0.267573, abs=1e-5)
    assert nn.CrossEntropyLoss(reduction="sum")(x, target).item() == pytest.approx(2 * 0.267573, abs=2e-5)
    assert nn.CrossEntropyLoss(ignore_index=1)(x, target).item() == pytest.approx(0.070775, abs=1e-5)
    assert nn.NLLLoss()(F.log_softmax(x, 1), target).item() == pytest.approx(
        nn.CrossEntropyLoss()(x, target).item(), abs=1e-6
    )
    soft = F.one_hot(target, 3).float()
    assert nn.CrossEntropyLoss()(x, soft).item() == pytest.approx(nn.CrossEntropyLoss()(x, target).item(), abs=1e-6)
    assert (
        nn.MSELoss()(x, x + 2).item() == 4
        and nn.L1Loss()(x, x + 2).item() == 2
        and nn.SmoothL1Loss()(x, x + 2).item() == 1.5
    )
    p, t = dlc.tensor([0.2, 0.9]), dlc.tensor([0.0, 1.0])
    want = -(math.log(0.8) + math.log(0.9)) / 2
    assert nn.BCELoss()(p, t).item() == pytest.approx(want, abs=1e-6)
    assert nn.BCEWithLogitsLoss()((p / (1 - p)).log(), t).item() == pytest.approx(want, abs=1e-6)
    q = dlc.tensor([[0.25, 0.75]])
    assert nn.KLDivLoss(reduction="batchmean")(dlc.tensor([[0.5, 0.5]]).log(), q).item() == pytest.approx(
        0.130812, abs=1e-5
    )
    with pytest.raises(ValueError):
        F.mse_loss(x, x, reduction="median")


def test_cross_entropy_index_out_of_range():
    with pytest.raises(IndexError):
        F.cross_entropy(dlc.zeros(2, 3), dlc.tensor([0, 3]))


def test_attention():
    q = dlc.rand(2, 3, 4)
    out = F.scaled_dot_product_attention(q, q, q, is_causal=True)
    assert np.allclose(out[:, 0].numpy(), q[:, 0].numpy(), atol=1e-6)


def test_clip_grad_norm():
    a, b = nn.Parameter(dlc.zeros(2)), nn.Parameter(dlc.zeros(1))
    a.grad, b.grad = dlc.tensor([3.0, 0.0]), dlc.tensor([4.0])
    total = nn.utils.clip_grad_norm_([a, b], 1.0)
    assert (
        total.item() == pytest.approx(5)
        and np.allclose(a.grad.numpy(), [0.6, 0], atol=1e-5)
        and np.allclose(b.grad.numpy(), [0.8], atol=1e-5)
    )
    nn.utils.clip_grad_norm_([a, b], 10.0)
    assert np.allclose(b.grad.numpy(), [0.8], atol=1e-5)
    nn.utils.clip_grad_value_([a, b], 0.5)
    assert b.grad.item() == 0.5
    a.grad.fill_(float("nan"))
    with pytest.raises(RuntimeError):
        nn.utils.clip_grad_norm_([a, b], 1.0, error_if_nonfinite=True)


def test_init():
    dlc.manual_seed(0)
    w = dlc.empty(200, 100)
    nn.init.xavier_uniform_(w)
    bound = math.sqrt(6 / 300)
    assert w.abs().max().item() <= bound and w.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
    nn.init.kaiming_normal_(w, nonlinearity="relu")
    assert w.std().item() == pytest.approx(math.sqrt(2 / 100), rel=0.05)
    nn.init.trunc_normal_(w, std=1.0, a=-1.0, b=1.0)
    assert w.abs().max().item() <= 1 and w.std().item() == pytest.approx(0.5396, rel=0.03)
    nn.init.constant_(w, 3)
    assert w.min().item() == w.max().item() == 3
    with pytest.raises(ValueError):
        nn.init.xavier_uniform_(dlc.empty(3))


def test_parameter():
    p = nn.Parameter(dlc.ones(2))
    assert (
        isinstance(p, dlc.Tensor)
        and p.requires_grad
        and p.is_leaf
        and repr(p).startswith("Parameter containing:\ntensor(")
    )
    assert not nn.Parameter(dlc.ones(2), requires_grad=False).requires_grad and type(p * 2) is dlc.Tensor
