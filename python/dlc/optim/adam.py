"""Adam and AdamW."""

from dlc import _C
from dlc.optim.optimizer import Optimizer, require


class Adam(Optimizer):
    """Steps scaled by running means of gradients and of their squares (Kingma and Ba, 2015)."""

    decoupled = False

    def __init__(
        self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, *, foreach=None,
        maximize=False, capturable=False, differentiable=False, fused=None,
    ):  # fmt: skip
        if amsgrad:
            raise NotImplementedError(f"{type(self).__name__}: `amsgrad` is not supported\nleave it out")
        super().__init__(
            params,
            {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize},
        )

    def check_group(self, group):
        require("learning rate", group["lr"], group["lr"] >= 0)
        require("epsilon", group["eps"], group["eps"] >= 0)
        require("weight_decay", group["weight_decay"], group["weight_decay"] >= 0)
        for i, beta in enumerate(group["betas"]):
            require(f"beta parameter at index {i}", beta, 0 <= beta < 1)

    def init_state(self, group):
        steps = {}
        for p in group["params"]:
            if p.dtype not in steps:
                steps[p.dtype] = _C.tensor(0.0)
            # Parameters that step together share one counter; update() separates those that do not.
            self.state[p] = {"step": steps[p.dtype], "exp_avg": _C.zeros_like(p), "exp_avg_sq": _C.zeros_like(p)}

    def update(self, group, params, grads):
        batches = {}
        for p, grad in zip(params, grads, strict=True):
            step = self.state[p]["step"]
            batches.setdefault(id(step), (step, [], []))
            batches[id(step)][1].append(p)
            batches[id(step)][2].append(grad)
        if len(params) < len(group["params"]):
            self._separate(group, params, batches)
        beta1, beta2 = group["betas"]
        for step, ps, gs in batches.values():
            states = [self.state[p] for p in ps]
            _C.optim_functional.adam_step(
                ps,
                gs,
                [s["exp_avg"] for s in states],
                [s["exp_avg_sq"] for s in states],
                step,
                lr=group["lr"],
                beta1=beta1,
                beta2=beta2,
                eps=group["eps"],
                weight_decay=group["weight_decay"],
                decoupled=self.decoupled,
                maximize=group["maximize"],
            )

    def _separate(self, group, params, batches):
        """Gives parameters without a gradient a counter of their own before the shared one advances."""
        active = {id(p) for p in params}
        copies = {}
        for p in group["params"]:
            step = self.state[p]["step"]
            if id(p) not in active and id(step) in batches:
                if id(step) not in copies:
                    copies[id(step)] = step.clone()
                self.state[p]["step"] = copies[id(step)]


class AdamW(Adam):
    """Adam with weight decay applied to the parameters themselves (Loshchilov and Hutter, 2019)."""

    decoupled = True

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, **kwargs):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **kwargs)
