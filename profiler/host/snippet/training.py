# Steps and phases of the training loop.
_RANGE, _MARK, _GC, _CHECKPOINT = 65, 66, 67, 68
_STEP_OPTIMIZER = 1
_RANGE_OPTIMIZER, _RANGE_BACKWARD, _RANGE_COMPILE = 2, 5, 6


# Global step hooks are inlined by torch.compile when it traces an optimizer: there they do
# nothing, so that the graph is the one it is without us. Outside they run as they are
# (_patch_eval_frame).
_step_begin = {}


def _before_step(optimizer, args, kwargs):
    if torch.compiler.is_compiling():
        return
    _step_begin[id(optimizer)] = _now()


def _after_step(optimizer, args, kwargs):
    if torch.compiler.is_compiling():
        return
    _finish_step(optimizer)


def _before_step_1x(optimizer):
    _step_begin[id(optimizer)] = _now()


def _finish_step(optimizer):
    for region in _regions_of_thread():
        region.marked = True
    label = _names.id(type(optimizer).__name__)
    begin = _step_begin.pop(id(optimizer), None)
    if begin is not None:
        _event(_RANGE, begin, 0, 0, -1, label, _RANGE_OPTIMIZER, 0)
    _step(_STEP_OPTIMIZER, label)
    _thread_cpu()


def _patch_optimizer(module):  # torch.optim.optimizer
    pre = getattr(module, "register_optimizer_step_pre_hook", None)
    post = getattr(module, "register_optimizer_step_post_hook", None)
    if pre is not None and post is not None and _torch_at_least(2, 1):
        global torch
        torch = sys.modules["torch"]  # is still being imported: torch.compiler comes later
        pre(_before_step)
        post(_after_step)
        return
    # Before 2.1 (torch.compiler): every optimizer class gets its step() wrapped in _hook_for_profile, which
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
        _quietly(_before_step_1x, self)
        result = step(self, *args, **kwargs)
        _quietly(_finish_step, self)
        return result

    cls.step = followed
    _replaced.add((id(cls), "step"))


# --- saving, garbage collection, backward


def _size_of(target):
    try:
        import os

        return os.path.getsize(target)
    except Exception:
        return -1


def _after_save(begin, args, result, error):
    # torch.save(obj, f, …)
    size = _size_of(args[1]) if len(args) > 1 and isinstance(args[1], (str, bytes)) else -1
    _event(_CHECKPOINT, begin, 0, 0, -1, size, 0, 0)


def _patch_serialization(module):  # torch.serialization
    _replace_function(module, "save", lambda *_: _now(), _after_save)
    # torch/__init__.py takes the function over by name: before (late installation) or after us.
    torch = sys.modules.get("torch")
    if torch is not None and getattr(torch, "save", None) is not None:
        torch.save = module.save


_gc_begin = 0


def _on_gc(phase, info):
    global _gc_begin
    if phase == "start":
        _gc_begin = _now()
    elif _gc_begin:
        begin, _gc_begin = _gc_begin, 0
        if not _has_file():
            return  # imports: not worth a file, and the process's role is not known yet
        end = _now()
        # Young collections take microseconds and come by the thousand.
        if info["generation"] == 2 or end - begin >= 100_000:
            _event(_GC, begin, 0, 0, -1, info["generation"], info["collected"], 0, end)


def _follow_gc():
    import gc

    gc.callbacks.append(_on_gc)


def _after_backward(begin, args, result, error):
    _event(_RANGE, begin, 0, 0, -1, _names.id("backward"), _RANGE_BACKWARD, 0)


def _patch_autograd(module):  # torch.autograd
    # Tensor.backward looks it up here at each call.
    _replace_function(module, "backward", lambda *_: _now(), _after_backward)


# --- compiling


def _all_code(code, out):
    out.append(code)
    for constant in code.co_consts:
        if type(constant) is type(code):
            _all_code(constant, out)


def _patch_eval_frame(module):  # torch._dynamo.eval_frame
    # Our Python functions run inside regions that torch.compile watches (hooks, what is called
    # around the job's functions): it must neither compile them nor warn about them.
    codes = []
    for value in list(globals().values()):
        functions = list(vars(value).values()) if isinstance(value, type) else [value]
        for function in functions:
            code = getattr(function, "__code__", None)
            if code is not None and code.co_filename.startswith("<idlescope"):
                _all_code(code, codes)
    for code in codes:
        module.skip_code(code)
    _replace_method(module.OptimizeContext, "__init__", None, _after_optimize_context)


# A step that was compiled (torch.compile(optimizer.step), or a function that calls it) runs none
# of Python's hooks: they were traced away. While it is traced we learn which compiled region
# contains a step of which optimizer; from then on the end of a call of the region stands for
# the step. torch.compile's own wrapper runs the enter and exit hooks of its context outside the
# region: no graph changes.
_compiled = None  # threading.local: .regions, the compiled calls that this thread is inside


def _regions_of_thread():
    global _compiled
    if _compiled is None:
        import threading

        _compiled = threading.local()
    regions = getattr(_compiled, "regions", None)
    if regions is None:
        regions = _compiled.regions = []
    return regions


class _Region:
    def __init__(self):
        self.optimizer, self.begin, self.marked = None, 0, False

    def enter(self):
        _quietly(self.begins)
        return self.leave

    def begins(self):
        self.marked = False
        _regions_of_thread().append(self)

    def leave(self):
        _quietly(self.ends)

    def ends(self):
        regions = _regions_of_thread()
        if self in regions:
            regions.remove(self)
        # Marked: it was not compiled after all (a graph break before it), the hooks ran.
        if self.optimizer is not None and not self.marked:
            _step(_STEP_OPTIMIZER, _names.id(self.optimizer))
            _thread_cpu()


def _after_optimize_context(token, args, result, error):
    hooks = getattr(args[0], "enter_exit_hooks", None)  # PyTorch 2.2 and later
    if error is None and type(hooks) is list:
        hooks.append(_Region().enter)


def _before_traced_method(variable, tx, name, *_):
    # Dynamo runs an optimizer's _init_group itself when it traces a step.
    regions = _regions_of_thread()
    if name == "_init_group" and regions:
        regions[-1].optimizer = type(variable.value).__name__


def _patch_optimizer_variable(module):  # torch._dynamo.variables.optimizer
    _replace_method(module.OptimizerVariable, "call_method", _before_traced_method, None)


class _Compiling:
    # torch._dynamo announces begin and end of each compilation (PyTorch 2.5 and later). They
    # nest; the outermost counts.
    depth = begin = 0

    def starts(self, *_):
        self.depth += 1
        if self.depth == 1:
            self.begin = _now()
            _compile(1)

    def ends(self, *_):
        self.depth = max(self.depth - 1, 0)
        if self.depth == 0 and self.begin:
            _compile(0)
            _event(_RANGE, self.begin, 0, 0, -1, _names.id("torch.compile"), _RANGE_COMPILE, 0)
            self.begin = 0


_compiling = _Compiling()


def _patch_dynamo_callback(module):  # torch._dynamo.callback
    handler = module.callback_handler
    handler.register_start_callback(_compiling.starts)
    handler.register_end_callback(_compiling.ends)


# --- other users of CUPTI, stream capture

_OTHER_PROFILER, _CAPTURE_EVENT = 69, 70


def _uses_cuda(args):
    # _prepare_profiler(config, activities), _enable_profiler(config, activities[, scopes])
    try:
        return any("CUDA" in str(activity) for activity in args[1])
    except Exception:
        return True


_profiler_runs = False


def _before_profiler(*args):
    global _profiler_runs
    if not _profiler_runs and _uses_cuda(args):
        _profiler_runs = True
        _other_profiler(1)  # returns after we have let go of CUPTI
        now = _now()
        _event(_OTHER_PROFILER, now, 0, 0, -1, 1, _names.id("torch.profiler"), 0, now)


def _after_profiler(token, args, result, error):
    global _profiler_runs
    if _profiler_runs:
        _profiler_runs = False
        now = _now()
        _event(_OTHER_PROFILER, now, 0, 0, -1, 0, _names.id("torch.profiler"), 0, now)
        _other_profiler(0)


def _patch_profiler(module):  # torch.autograd.profiler
    _replace_function(module, "_prepare_profiler", _before_profiler, None)
    _replace_function(module, "_enable_profiler", _before_profiler, None)
    _replace_function(module, "_disable_profiler", None, _after_profiler)


_capture_begin = {}


def _before_capture(graph, *_):
    _capture(1)
    _capture_begin[id(graph)] = _now()


def _after_capture_begin(token, args, result, error):
    if error is not None:  # the capture did not begin
        _capture_begin.pop(id(args[0]), None)
        _capture(0)


def _after_capture_end(token, args, result, error):
    begin = _capture_begin.pop(id(args[0]), None)
    if begin is not None:
        _event(_CAPTURE_EVENT, begin, 0, 0, -1, 0, 0, 0)
        _capture(0)


def _patch_cuda_graphs(module):  # torch.cuda.graphs
    _replace_method(module.CUDAGraph, "capture_begin", _before_capture, _after_capture_begin)
    _replace_method(module.CUDAGraph, "capture_end", None, _after_capture_end)
