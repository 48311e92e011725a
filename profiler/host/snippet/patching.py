# Runs inside the job, in a namespace of its own, when `torch` is imported for the first time.
#
# How things are replaced: where they are *defined* (bases move between PyTorch versions), once,
# by built-in functions that put no frame of ours around the job's code (_around). Nothing here
# may raise into the job: what is missing in this version of PyTorch is left alone.
import sys


def _quietly(function, *args):
    try:
        return function(*args)
    except Exception:
        return None


def _where_defined(cls, name):
    for c in cls.__mro__:
        if name in c.__dict__:
            return c, c.__dict__[name]
    return None, None


def _torch_at_least(major, minor):
    numbers = str(sys.modules["torch"].version.__version__).split(".")
    return (int(numbers[0]), int(numbers[1])) >= (major, minor)


_replaced = set()  # (id of the owner, name); the owners are modules and classes, which stay


def _replace_method(cls, name, before, after):
    owner, original = _where_defined(cls, name)
    if owner is None or (id(owner), name) in _replaced:
        return
    setattr(owner, name, _method(_around(original, before, after)))
    _replaced.add((id(owner), name))


def _replace_function(module, name, before, after):
    original = getattr(module, name, None)
    if original is None or (id(module), name) in _replaced:
        return
    # Pickle finds a built-in function by name if what it is bound to is a module.
    state = type(sys)("_idlescope_state")
    state.parts = (original, before, after)
    setattr(module, name, _around_function(state, original))
    _replaced.add((id(module), name))


class _Names:
    # Ids of names in this process's file. A forked child has a file of its own.
    def __init__(self):
        self.generation, self.ids = -1, {}

    def id(self, text):
        generation = _generation()
        if generation != self.generation:
            self.ids = {}
            self.generation = generation
        number = self.ids.get(text)
        if number is None:
            number = _name(text)
            if len(self.ids) < 10000:
                self.ids[text] = number
        return number


_names = _Names()


def _class_name(thing):
    cls = thing if isinstance(thing, type) else type(thing)
    return "%s.%s" % (getattr(cls, "__module__", "?"), getattr(cls, "__qualname__", "?"))


def _function_name(thing):
    name = getattr(thing, "__qualname__", None)
    if name is None:
        return _class_name(thing)
    code = getattr(thing, "__code__", None)
    if code is not None:
        return "%s:%d %s" % (code.co_filename, code.co_firstlineno, name)
    return "%s.%s" % (getattr(thing, "__module__", "?"), name)


def _is_library(path):
    return (
        "/site-packages/" in path
        or "/dist-packages/" in path
        or path.startswith("<")
        or "/lib/python3" in path
        or "/torchinductor_" in path
    )


def _site(frame):
    # ("file:line function" of the first frame outside libraries, the same of the innermost)
    innermost = user = None
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith("<idlescope"):
            if innermost is None:
                innermost = frame
            if not _is_library(path):
                user = frame
                break
        frame = frame.f_back
    def text(f):
        if f is None:
            return ""
        return "%s:%d %s" % (f.f_code.co_filename, f.f_lineno, f.f_code.co_name)
    return text(user), text(innermost)


class _Finder:
    # First in sys.meta_path: lets the other finders find a module, and runs our patch right
    # after the module's own code, through the instance of its loader.
    def __init__(self, targets):
        self.targets = targets

    def find_spec(self, name, path=None, target=None):
        patch = self.targets.get(name)
        if patch is None:
            return None
        spec = None
        for finder in list(sys.meta_path):
            find_spec = getattr(finder, "find_spec", None)
            if finder is self or find_spec is None:
                continue
            spec = find_spec(name, path, target)
            if spec is not None:
                break
        loader = getattr(spec, "loader", None)
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return spec

        def exec_module(module):
            try:
                del loader.exec_module  # the loader is as it was
            except Exception:
                pass
            execute(module)
            if self.targets.pop(name, None) is not None:  # find_spec may only have been asked
                _quietly(patch, module)

        try:
            loader.exec_module = exec_module
        except Exception:
            pass
        return spec


def _install(targets):
    for name in list(targets):
        module = sys.modules.get(name)
        if module is not None:
            _quietly(targets.pop(name), module)
    if targets:
        sys.meta_path.insert(0, _Finder(targets))
