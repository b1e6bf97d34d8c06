"""What Module's hooks are made of: handles, and the bookkeeping of backward hooks."""

import itertools

from dlc._C import Tensor

_hook_ids = itertools.count()


class RemovableHandle:
    """Takes a hook away: `handle.remove()`, or at the end of a `with` block."""

    def __init__(self, hooks, *extra):
        self.hooks = hooks
        self.extra = extra
        self.id = next(_hook_ids)

    def remove(self):
        self.hooks.pop(self.id, None)
        for table in self.extra:
            table.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


class BackwardHooks:
    """Calls a module's backward hooks once the gradients of its outputs and of its inputs are known."""

    def __init__(self, module):
        self.module = module
        self.grad_outputs = None
        self.grad_inputs = None
        self.waiting = 0

    def watch_inputs(self, args):
        self.inputs = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad]
        self.grad_inputs = [None] * len(args)
        if not self.module._backward_hooks:
            return args
        args = list(args)
        for i in self.inputs:
            args[i] = args[i].view_as(args[i])  # a node of its own, so that hooks see this use only
            args[i].register_hook(lambda g, i=i: self._input_ready(i, g))
        self.waiting = len(self.inputs)
        return tuple(args)

    def watch_outputs(self, result):
        single = isinstance(result, Tensor)
        outputs = [result] if single else list(result) if isinstance(result, (tuple, list)) else []
        self.grad_outputs = [None] * len(outputs)
        for i, out in enumerate(outputs):
            if isinstance(out, Tensor) and out.requires_grad:
                out = out.view_as(out)
                out.register_hook(lambda g, i=i: self._output_ready(i, g))
                outputs[i] = out
        if single:
            return outputs[0]
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            return type(result)(*outputs)
        return type(result)(outputs) if isinstance(result, (tuple, list)) else result

    def _output_ready(self, i, grad):
        self.grad_outputs[i] = grad
        changed = None
        for hook in tuple(self.module._backward_pre_hooks.values()):
            result = hook(self.module, tuple(self.grad_outputs))
            if result is not None:
                self.grad_outputs = list(result) if isinstance(result, (tuple, list)) else [result]
                changed = self.grad_outputs[i]
        if not self.waiting:
            self._run(tuple(self.grad_inputs))
        return changed

    def _input_ready(self, i, grad):
        self.grad_inputs[i] = grad
        self.waiting -= 1
        if self.waiting:
            return None
        result = self._run(tuple(self.grad_inputs))
        self.waiting = len(self.inputs)
        return result[i] if result is not None else None

    def _run(self, grad_inputs):
        changed = None
        for hook in tuple(self.module._backward_hooks.values()):
            result = hook(self.module, grad_inputs, tuple(self.grad_outputs))
            if result is not None:
                grad_inputs = result if isinstance(result, tuple) else (result,)
                changed = grad_inputs
        return changed
