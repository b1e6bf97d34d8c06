"""Stochastic gradient descent."""

from dlc import _C
from dlc.optim.optimizer import Optimizer, require, zeros_like


class SGD(Optimizer):
    """p -= lr * g, with optional momentum, dampening, Nesterov's form and weight decay."""

    def __init__(
        self, params, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, *, maximize=False,
        foreach=None, differentiable=False, fused=None,
    ):  # fmt: skip
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
            },
        )

    def check_group(self, group):
        require("learning rate", group["lr"], group["lr"] >= 0)
        require("momentum", group["momentum"], group["momentum"] >= 0)
        require("weight_decay", group["weight_decay"], group["weight_decay"] >= 0)

    def init_state(self, group):
        if group["momentum"] != 0:
            for p, buffer in zip(group["params"], zeros_like(group["params"]), strict=True):
                self.state[p]["momentum_buffer"] = buffer

    def update(self, group, params, grads):
        buffers = []
        if group["momentum"] != 0:
            if any("momentum_buffer" not in self.state[p] for p in params):
                self.init_state(group)
            buffers = [self.state[p]["momentum_buffer"] for p in params]
        # The first step takes the gradient itself for the buffer: the same as undamped momentum from a zero buffer.
        dampening = group["dampening"]
        if dampening:
            fresh = [p for p in params if not self.state[p].get("started")]
            if fresh:
                for p in params:
                    self.state[p]["started"] = True
                if len(fresh) == len(params):
                    dampening = 0.0
                else:
                    return self._split(group, params, grads, fresh)
        _C.optim_functional.sgd_step(
            params,
            grads,
            buffers,
            lr=group["lr"],
            momentum=group["momentum"],
            dampening=dampening,
            weight_decay=group["weight_decay"],
            nesterov=group["nesterov"],
            maximize=group["maximize"],
        )

    def _split(self, group, params, grads, fresh):
        first = {id(p) for p in fresh}
        for wanted in (True, False):
            pairs = [(p, g) for p, g in zip(params, grads, strict=True) if (id(p) in first) == wanted]
            if wanted:
                for p in fresh:
                    self.state[p]["started"] = False
            if pairs:
                self.update(group, [p for p, _ in pairs], [g for _, g in pairs])
