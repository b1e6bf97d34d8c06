"""Optimizer: parameter groups, their options and their state."""

from collections import defaultdict
from collections.abc import Mapping

from dlc import _C
from dlc._C import Tensor, enable_grad, no_grad
from dlc._errors import error


class Optimizer:
    """Base of the optimizers. State is made at construction, so that the first step is a program like all others."""

    def __init__(self, params, defaults):
        if isinstance(params, Tensor):
            raise error(
                TypeError,
                f"params argument given to the optimizer should be an iterable of Tensors or dicts, but got {type(params).__name__}",
                "put the tensor in a list",
            )
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise error(ValueError, "optimizer got an empty parameter list", "give model.parameters(), read once")
        if not isinstance(groups[0], Mapping):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(dict(group))

    def add_param_group(self, param_group):
        """Adds parameters with options of their own."""
        if not isinstance(param_group, Mapping):
            raise TypeError(f"param_group must be a dict, but got {type(param_group).__name__}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError("optimizer parameters need to be organized in ordered collections, but a set has none")
        params = [params] if isinstance(params, Tensor) else list(params)
        params = [p[1] if isinstance(p, tuple) else p for p in params]
        known = {id(p) for group in self.param_groups for p in group["params"]}
        for p in params:
            if not isinstance(p, Tensor):
                raise error(
                    TypeError,
                    f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}",
                    "give model.parameters(), or a list of tensors",
                )
            if not p.is_leaf:
                raise error(
                    ValueError, "can't optimize a non-leaf Tensor", "give the tensor it was computed from, or detach it"
                )
            if id(p) in known:
                raise error(
                    ValueError, "some parameters appear in more than one parameter group", "list each parameter once"
                )
            known.add(id(p))
        group = {"params": params, **{k: v for k, v in param_group.items() if k != "params"}}
        for name, default in self.defaults.items():
            group.setdefault(name, default)
        self.check_group(group)
        self.param_groups.append(group)
        with no_grad():
            self.init_state(group)

    def check_group(self, group):
        """Raises ValueError for options out of range."""

    def init_state(self, group):
        """Makes the state of a group's parameters."""

    def update(self, group, params, grads):
        """One step of those parameters of a group that have gradients."""
        raise NotImplementedError

    def step(self, closure=None):
        """One step from the gradients; `closure` computes the loss anew and is called first."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                params, grads = [], []
                for p in group["params"]:
                    grad = p.grad
                    if grad is not None:
                        params.append(p)
                        grads.append(grad)
                if params:
                    self.update(group, params, grads)
        return loss

    def zero_grad(self, set_to_none=True):
        """Drops the gradients of all parameters, or sets them to zero."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    p.grad = p.grad.detach()
                    p.grad.zero_()

    # --- state

    def state_dict(self):
        """Options and state, with parameters replaced by their numbers."""
        index = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                index.setdefault(id(p), len(index))
            groups.append(
                {**{k: v for k, v in group.items() if k != "params"}, "params": [index[id(p)] for p in group["params"]]}
            )
        state = {index[id(p)]: values for p, values in self.state.items() if id(p) in index}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict):
        """Takes options and state from state_dict(); the groups must match."""
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(s["params"]) != len(g["params"]) for s, g in zip(saved, self.param_groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        params = {}
        for s, group in zip(saved, self.param_groups, strict=True):
            params.update(zip(s["params"], group["params"], strict=True))
            group.update({k: v for k, v in s.items() if k != "params"})
        copies = {}  # steps shared by parameters stay shared
        self.state = defaultdict(dict)
        for key, values in state_dict["state"].items():
            p = params[int(key) if isinstance(key, str) else key]
            self.state[p] = {name: self._loaded(name, value, p, copies) for name, value in values.items()}

    def _loaded(self, name, value, param, copies):
        if not isinstance(value, Tensor):
            return value
        if id(value) not in copies:
            with no_grad():
                same = name == "step" or not value.is_floating_point()
                copies[id(value)] = (value if same else value.to(param.dtype)).detach().clone()
        return copies[id(value)]

    def __repr__(self):
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"


def require(name, value, ok):
    """Raises ValueError for an option out of range."""
    if not ok:
        raise error(
            ValueError, f"Invalid {name} value: {value}", f"give a {name} in the range that the optimizer takes"
        )


def zeros_like(params):
    """A zero tensor for each parameter."""
    return [_C.zeros_like(p) for p in params]
