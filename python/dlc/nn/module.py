"""Module: a tree of parameters, buffers and submodules with a forward function."""

import itertools
from collections import OrderedDict, namedtuple

from dlc._C import Tensor, _mark_state, _ModuleBase, no_grad
from dlc._C import dtype as _dtype
from dlc._errors import error
from dlc.nn.hooks import BackwardHooks, RemovableHandle
from dlc.nn.parameter import Buffer, Parameter


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()


def _before_init(what):
    return error(
        AttributeError,
        f"cannot assign {what} before Module.__init__() call",
        "call super().__init__() first in __init__",
    )


class Module(_ModuleBase):
    """Base of all layers and models. Subclasses call `super().__init__()` and define `forward`."""

    training: bool
    _version = 1

    def __init__(self, *args, **kwargs):
        if args or kwargs:
            raise TypeError(f"{type(self).__name__}.__init__() got arguments that Module does not take")
        set_ = super().__setattr__
        set_("training", True)
        for name in ("_parameters", "_buffers", "_modules"):
            set_(name, {})
        set_("_non_persistent_buffers_set", set())
        for name in (
            "_forward_hooks",
            "_forward_pre_hooks",
            "_backward_hooks",
            "_backward_pre_hooks",
            "_state_dict_hooks",
            "_load_state_dict_pre_hooks",
        ):
            set_(name, OrderedDict())
        set_("_forward_hooks_with_kwargs", {})
        set_("_forward_pre_hooks_with_kwargs", {})
        set_("_forward_hooks_always_called", {})

    def forward(self, *args, **kwargs):
        """What calling the module computes; every subclass defines it."""
        raise error(
            NotImplementedError,
            f'Module [{type(self).__name__}] is missing the required "forward" function',
            f"define forward(self, ...) in {type(self).__name__}",
        )

    # --- calls and hooks

    def __call__(self, *args, **kwargs):
        if not (self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks):
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def _call_with_hooks(self, args, kwargs):
        for key, hook in tuple(self._forward_pre_hooks.items()):
            if key in self._forward_pre_hooks_with_kwargs:
                result = hook(self, args, kwargs)
                if result is not None:
                    args, kwargs = result
            else:
                result = hook(self, args)
                if result is not None:
                    args = result if isinstance(result, tuple) else (result,)
        backward = BackwardHooks(self) if self._backward_hooks or self._backward_pre_hooks else None
        if backward:
            args = backward.watch_inputs(args)
        result = None
        called = set()
        try:
            result = self.forward(*args, **kwargs)
            for key, hook in tuple(self._forward_hooks.items()):
                called.add(key)
                if key in self._forward_hooks_with_kwargs:
                    changed = hook(self, args, kwargs, result)
                else:
                    changed = hook(self, args, result)
                if changed is not None:
                    result = changed
        except BaseException:
            for key in self._forward_hooks_always_called:
                if key not in called and key in self._forward_hooks:
                    self._forward_hooks[key](self, args, result)
            raise
        return backward.watch_outputs(result) if backward else result

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Calls `hook(module, args)` before forward; it may return other arguments."""
        handle = RemovableHandle(self._forward_pre_hooks, self._forward_pre_hooks_with_kwargs)
        self._forward_pre_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        if prepend:
            self._forward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Calls `hook(module, args, output)` after forward; it may return another output."""
        handle = RemovableHandle(
            self._forward_hooks, self._forward_hooks_with_kwargs, self._forward_hooks_always_called
        )
        self._forward_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        if prepend:
            self._forward_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_full_backward_hook(self, hook, prepend=False):
        """Calls `hook(module, grad_input, grad_output)` when the gradients are known; it may return another grad_input."""
        handle = RemovableHandle(self._backward_hooks)
        self._backward_hooks[handle.id] = hook
        if prepend:
            self._backward_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Calls `hook(module, grad_output)` before the gradients of the inputs are computed; it may return another."""
        handle = RemovableHandle(self._backward_pre_hooks)
        self._backward_pre_hooks[handle.id] = hook
        if prepend:
            self._backward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    # --- members

    def register_parameter(self, name, param):
        """Adds a parameter (or None) under `name`."""
        self._check_name(name, "parameter", self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{type(param).__name__}' object to parameter '{name}' (nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"cannot assign a non-leaf tensor to parameter '{name}'\nmake it inside forward, or detach it"
            )
        self._parameters[name] = param

    def register_buffer(self, name, tensor, persistent=True):
        """Adds a tensor that is state but no parameter; non-persistent ones stay out of state_dict."""
        self._check_name(name, "buffer", self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' (Tensor or None required)"
            )
        self._buffers[name] = _mark_state(tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name, module):
        """Adds a submodule (or None) under `name`."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        self._check_name(name, "module", self._modules)
        self._modules[name] = module

    register_module = add_module

    def _check_name(self, name, kind, own):
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign a {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"the {kind} name must be a string, not {type(name).__name__}")
        if "." in name:
            raise KeyError(f'the {kind} name can\'t contain ".": {name!r}')
        if name == "":
            raise KeyError(f'the {kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in own:
            raise KeyError(f"attribute '{name}' already exists")

    def __setattr__(self, name, value):
        members = self.__dict__
        parameters = members.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise _before_init("parameters")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Buffer):
            if parameters is None:
                raise _before_init("buffers")
            self._forget(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        elif isinstance(value, Module):
            if parameters is None:
                raise _before_init("module")
            self._forget(name, "_modules")
            members["_modules"][name] = value
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as parameter '{name}' (nn.Parameter or None expected)"
                )
            parameters[name] = None
        elif parameters is not None and name in members["_modules"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as child module '{name}' (nn.Module or None expected)"
                )
            members["_modules"][name] = None
        elif parameters is not None and name in members["_buffers"]:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as buffer '{name}' (dlc.Tensor or None expected)"
                )
            members["_buffers"][name] = value
        else:
            super().__setattr__(name, value)

    def _forget(self, name, keep):
        """Removes `name` from everywhere but the table it is about to enter."""
        members = self.__dict__
        members.pop(name, None)
        for table in ("_parameters", "_buffers", "_modules"):
            if table != keep:
                members[table].pop(name, None)
        members["_non_persistent_buffers_set"].discard(name)

    def __delattr__(self, name):
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self):
        names = {*super().__dir__(), *self._parameters, *self._buffers, *self._modules}
        return sorted(n for n in names if not n[:1].isdigit())

    # --- walking the tree

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """All modules of the tree with their paths, this one first."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self):
        """All modules of the tree, this one first."""
        for _, module in self.named_modules():
            yield module

    def named_children(self):
        """The direct submodules with their names."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self):
        """The direct submodules."""
        for _, module in self.named_children():
            yield module

    def _named_members(self, table, prefix, recurse, remove_duplicate):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in getattr(module, table).items():
                if value is None or (remove_duplicate and id(value) in seen):
                    continue
                seen.add(id(value))
                yield (f"{path}.{name}" if path else name), value

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """All parameters with their paths, each once."""
        yield from self._named_members("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        """All parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """All buffers with their paths, each once."""
        yield from self._named_members("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """All buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target):
        """The module at the path `target`; AttributeError if there is none."""
        module = self
        for part in target.split(".") if target else ():
            module = getattr(module, part)
            if not isinstance(module, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module

    def get_parameter(self, target):
        """The parameter at the path `target`."""
        path, _, name = target.rpartition(".")
        value = getattr(self.get_submodule(path), name)
        if not isinstance(value, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return value

    def get_buffer(self, target):
        """The buffer at the path `target`."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return module._buffers[name]

    def apply(self, fn):
        """Calls `fn` on every module of the tree, children first; returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # --- modes, dtype, gradients

    def train(self, mode=True):
        """Sets training mode in the whole tree; returns self."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Sets evaluation mode in the whole tree; returns self."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Sets requires_grad of all parameters; returns self."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Drops the gradients of all parameters, or sets them to zero."""
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad = parameter.grad.detach()
                parameter.grad.zero_()

    def _apply(self, fn):
        for module in self.children():
            module._apply(fn)
        for parameter in self._parameters.values():
            if parameter is None:
                continue
            with no_grad():
                grad = parameter.grad
                parameter.grad = None
                parameter.data = fn(parameter.data)
                if grad is not None:
                    parameter.grad = fn(grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = _mark_state(fn(buffer))
        return self

    def to(self, *args, **kwargs):
        """Converts floating parameters and buffers to a dtype (and checks that a device is the CPU); returns self."""
        target = kwargs.pop("dtype", None)
        device = kwargs.pop("device", None)
        for arg in args:
            if isinstance(arg, _dtype):
                target = arg
            elif isinstance(arg, Tensor):
                target = arg.dtype
            elif not isinstance(arg, bool):
                device = arg
        if target is not None and not target.is_floating_point:
            raise TypeError(f"nn.Module.to only accepts floating point dtypes, not {target}")

        def convert(t):
            if device is not None:
                t = t.to(device)
            return t.to(target) if target is not None and t.is_floating_point() else t

        return self._apply(convert)

    def float(self):
        """Converts floating parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self):
        """Converts floating parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self):
        """Converts floating parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self):
        """Converts floating parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def type(self, dst_type):
        """Converts all parameters and buffers to a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self):
        """Does nothing: everything is on the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None):
        """Raises RuntimeError: there is no CUDA device."""
        return self._apply(lambda t: t.cuda())

    # --- state

    def get_extra_state(self):
        """State beside tensors to put into state_dict; subclasses define it."""
        raise RuntimeError("get_extra_state is not defined by this module")

    def set_extra_state(self, state):
        """Takes the state of get_extra_state back; subclasses define it."""
        raise RuntimeError("set_extra_state is not defined by this module")

    def state_dict(self, *, destination=None, prefix="", keep_vars=False):
        """Parameters and persistent buffers by path. The tensors share memory with the module's."""
        if destination is None:
            destination = OrderedDict()
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            destination = hook(self, destination, prefix, {}) or destination
        return destination

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, value in itertools.chain(self._parameters.items(), self._buffers.items()):
            if value is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[prefix + "_extra_state"] = self.get_extra_state()

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copies tensors of `state_dict` into this module's; RuntimeError lists what does not fit."""
        if not hasattr(state_dict, "keys"):
            raise error(
                TypeError,
                f"Expected state_dict to be dict-like, got {type(state_dict).__name__}.",
                "give what state_dict() or dlc.load() returned",
            )
        missing, errors = [], []
        expected = set()
        for path, module in self.named_modules(remove_duplicate=False):
            prefix = path + "." if path else ""
            for hook in module._load_state_dict_pre_hooks.values():
                hook(state_dict, prefix, {}, strict, missing, [], errors)
            module._load_from_state_dict(state_dict, prefix, assign, missing, expected, errors)
        unexpected = [k for k in state_dict if k not in expected]
        if strict:
            if unexpected:
                errors.insert(0, "Unexpected key(s) in state_dict: " + ", ".join(f'"{k}"' for k in unexpected) + ". ")
            if missing:
                errors.insert(0, "Missing key(s) in state_dict: " + ", ".join(f'"{k}"' for k in missing) + ". ")
        if errors:
            more = [f"and {len(errors) - 10} more"] if len(errors) > 10 else []
            raise error(
                RuntimeError,
                "\n\t".join([f"Error(s) in loading state_dict for {type(self).__name__}:", *errors[:10], *more]),
                "load what the same model saved, or pass strict=False to leave keys out",
            )
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(self, state, prefix, assign, missing, expected, errors):
        persistent = {k: v for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set}
        for name, own in itertools.chain(self._parameters.items(), persistent.items()):
            key = prefix + name
            if own is None:
                continue
            expected.add(key)
            if key not in state:
                missing.append(key)
                continue
            value = state[key]
            if not isinstance(value, Tensor):
                errors.append(f'"{key}" must be a Tensor, not {type(value).__name__}.')
            elif value.shape != own.shape:
                errors.append(
                    f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
                    f"the shape in current model is {own.shape}."
                )
            elif assign:
                if isinstance(own, Parameter) and not isinstance(value, Parameter):
                    value = Parameter(value, requires_grad=own.requires_grad)
                setattr(self, name, value)
            else:
                with no_grad():
                    own.copy_(value)
        key = prefix + "_extra_state"
        if type(self).set_extra_state is not Module.set_extra_state:
            expected.add(key)
            if key in state:
                self.set_extra_state(state[key])
            else:
                missing.append(key)

    def register_state_dict_post_hook(self, hook):
        """Calls `hook(module, state_dict, prefix, local_metadata)` at the end of state_dict()."""
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = hook
        return handle

    def register_load_state_dict_pre_hook(self, hook):
        """Calls `hook` with the state dict before it is loaded."""
        handle = RemovableHandle(self._load_state_dict_pre_hooks)
        self._load_state_dict_pre_hooks[handle.id] = lambda *args: hook(self, *args)
        return handle

    # --- compile, printing

    def compile(self, **kwargs):
        """Compiles this module's forward in place, with the arguments of dlc.compile."""
        from dlc.compiler import compile_in_place

        compile_in_place(self, **kwargs)

    def extra_repr(self):
        """What repr shows between the parentheses; subclasses define it."""
        return ""

    def _get_name(self):
        return type(self).__name__

    def __repr__(self):
        lines = []
        for name, module in self._modules.items():
            text = repr(module).split("\n")
            lines.append(f"({name}): " + "\n".join([text[0], *("  " + line for line in text[1:])]))
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        if not lines and len(extra_lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(extra_lines + lines) + "\n)"

    def __deepcopy__(self, memo):
        import copy

        if id(self) in memo:
            return memo[id(self)]
        result = self.__class__.__new__(self.__class__)
        memo[id(self)] = result
        for name, value in self.__dict__.items():
            result.__dict__[name] = copy.deepcopy(value, memo)
        return result
