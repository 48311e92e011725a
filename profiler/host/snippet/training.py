# Steps and phases of the training loop.
_RANGE, _MARK, _GC, _CHECKPOINT = 65, 66, 67, 68
_STEP_OPTIMIZER = 1
_RANGE_OPTIMIZER, _RANGE_BACKWARD, _RANGE_COMPILE = 2, 5, 6


def _never():
    return False


_is_compiling = _never
_step_begin = {}


def _before_step(optimizer, args, kwargs):
    if _is_compiling():
        return
    _step_begin[id(optimizer)] = _now()


def _after_step(optimizer, args, kwargs):
    if _is_compiling():
        return
    _finish_step(optimizer)


def _finish_step(optimizer):
    label = _names.id(type(optimizer).__name__)
    begin = _step_begin.pop(id(optimizer), None)
    if begin is not None:
        _event(_RANGE, begin, 0, 0, -1, label, _RANGE_OPTIMIZER, 0)
    _step(_STEP_OPTIMIZER, label)
    _thread_cpu()


def _patch_optimizer(module):  # torch.optim.optimizer
    global _is_compiling
    import torch

    pre = getattr(module, "register_optimizer_step_pre_hook", None)
    post = getattr(module, "register_optimizer_step_post_hook", None)
    if pre is not None and post is not None:  # PyTorch 2.0 and later
        compiler = getattr(torch, "compiler", None)
        _is_compiling = getattr(compiler, "is_compiling", _never)
        pre(_before_step)
        post(_after_step)
        return
    # PyTorch 1.x: every optimizer class gets its step() wrapped in _hook_for_profile, which
    # its instances call when they are made.
    _replace_method(module.Optimizer, "_hook_for_profile", None, _after_hook_for_profile)


def _after_hook_for_profile(token, args, result, error):
    cls = type(args[0])
    step = cls.__dict__.get("step")
    if step is None or (id(cls), "step") in _replaced:
        return
    import functools

    @functools.wraps(step)  # a Python function: lr_scheduler binds it again (__func__)
    def followed(self, *args, **kwargs):
        _quietly(_before_step, self, args, kwargs)
        result = step(self, *args, **kwargs)
        _quietly(_finish_step, self)
        return result

    cls.step = followed
    _replaced.add((id(cls), "step"))
