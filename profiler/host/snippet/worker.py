# The DataLoader inside its workers (processes or threads), and the pin-memory thread.
(
    _LOOP,
    _INDEX_WAIT,
    _FETCH_EVENT,
    _FETCH_CPU,
    _FETCH_IO,
    _PUT,
    _PICKLE,
    _EXIT,
    _FRAME,
    _EMPTY,
) = range(32, 42)
_PIN_WAIT, _PIN_COPY, _PIN_PUT = 48, 49, 50
_ROLE_WORKER = 2


def _patch_fetchers(module):
    for name in ("_MapDatasetFetcher", "_IterableDatasetFetcher"):
        owner, original = _where_defined(getattr(module, name), "fetch")
        if (id(owner), "fetch") not in _replaced:
            owner.fetch = _method(_fetch(original))
            _replaced.add((id(owner), "fetch"))
    _replace_method(module._BaseDatasetFetcher, "__init__", None, _after_fetcher_init)


def _after_fetcher_init(token, args, result, error):
    fetcher = args[0]
    if fetcher.collate_fn is not None:
        fetcher.collate_fn = _collate(fetcher.collate_fn)


def _index_of(message):
    if type(message) is tuple and message and type(message[0]) is int:
        return message[0]
    return -1


class _InQueue:
    # A queue of which this thread only takes: the wait ends with an index. queue.Empty passes
    # through and the wait stays open over it (PyTorch polls every five seconds).
    def __init__(self, queue, kind, seen):
        self._queue, self._kind, self._seen, self._begin = queue, kind, seen, 0

    def get(self, *args, **kwargs):
        if not self._begin:
            self._begin = _now()
        message = self._queue.get(*args, **kwargs)
        end = _now()
        index = _index_of(message)
        if index >= 0:
            _event(self._kind, self._begin, 0, 0, index, 0, 0, 0, end)
        self._begin = 0
        self._seen(index, end)
        return message

    def __getattr__(self, name):
        return getattr(self._queue, name)


class _OutQueue:
    # A queue into which this thread only puts.
    def __init__(self, queue, kind, before):
        self._queue, self._kind, self._before = queue, kind, before

    def put(self, message, *args, **kwargs):
        begin = _now()
        index = _index_of(message)
        self._before(message, index, begin)
        result = self._queue.put(message, *args, **kwargs)
        if index >= 0:
            _event(self._kind, begin, 0, 0, index, 0, 0, 0)
        return result

    def __getattr__(self, name):
        return getattr(self._queue, name)


class _Worker:
    # One worker's loop; created in the worker itself, never pickled.
    def __init__(self, number, process):
        self.number, self.process, self.delivered = number, process, 0
        self.begin = _now()

    def took(self, index, now):
        _context(0, 0, index, self.number)

    def puts(self, message, index, now):
        if index < 0:  # an epoch begins again (_ResumeIteration)
            self.delivered = 0
            return
        kind = type(message[1]).__name__
        if kind == "_IterableDatasetStopIteration":
            if self.delivered == 0:
                _event(_EMPTY, now, 0, 0, -1, self.number, 0, 0, now)
        elif kind != "ExceptionWrapper":
            self.delivered += 1

    def ends(self, failed):
        end = _now()
        parent = 0
        if self.process:
            import multiprocessing

            parent = multiprocessing.parent_process().pid  # not the fork server
        _event(_LOOP, self.begin, 0, 0, -1, self.number, parent, 0, end)
        _event(_EXIT, end, 0, 0, -1, self.number, 1 if failed else 0, 0, end)
        _worker_ends()


def _argument(names, name, args, kwargs):
    if name in kwargs:
        return kwargs[name]
    index = names.index(name)
    return args[index] if index < len(args) else None


def _set_argument(names, name, args, kwargs, value):
    if name in kwargs:
        kwargs[name] = value
    else:
        args[names.index(name)] = value


def _in_main_thread_of_child():
    import multiprocessing

    return multiprocessing.parent_process() is not None


def _enter_worker(names, args, kwargs):
    queue = _argument(names, "index_queue", args, kwargs)
    if type(queue) is _InQueue:  # a loop that calls another one: already followed
        return None
    process = "thread" not in type(queue).__module__ and _in_main_thread_of_child()
    number = _argument(names, "worker_id", args, kwargs) if "worker_id" in names else -1
    if process:
        _role(_ROLE_WORKER)
        _quietly(_follow_pickling)
    worker = _Worker(number if type(number) is int else -1, process)
    _context(0, 0, -1, worker.number)
    _set_argument(names, "index_queue", args, kwargs, _InQueue(queue, _INDEX_WAIT, worker.took))
    out = _argument(names, "data_queue", args, kwargs)
    _set_argument(names, "data_queue", args, kwargs, _OutQueue(out, _PUT, worker.puts))
    return worker


def _wrap_worker_loop(module, name, function, names):
    # A Python function with the original's name: spawn pickles the target by name.
    import functools

    @functools.wraps(function)
    def loop(*args, **kwargs):
        worker = None
        try:
            followed = list(args)
            worker = _enter_worker(names, followed, kwargs)
            args = followed
        except Exception:
            pass
        failed = True
        try:
            result = function(*args, **kwargs)
            failed = False
            return result
        finally:
            if worker is not None:
                _quietly(worker.ends, failed)

    setattr(module, name, loop)
    _replaced.add((id(module), name))


def _wrap_worker_loops(module):
    # Every function of the module that takes both queues: _worker_loop, and what PyTorch
    # PR 161044 makes of it (_process_worker_loop, _thread_worker_loop, _base_worker_loop).
    for name, function in list(vars(module).items()):
        code = getattr(function, "__code__", None)
        if code is None or (id(module), name) in _replaced:
            continue
        if getattr(function, "__module__", None) != module.__name__:
            continue
        names = code.co_varnames[: code.co_argcount]
        if "index_queue" in names and "data_queue" in names:
            _wrap_worker_loop(module, name, function, names)


def _after_pickle(begin, args, result, error):
    # args: (class, object[, protocol])
    message = args[1]
    index = _index_of(message)
    if error is not None or index < 0 or len(message) != 2:
        return
    _event(_PICKLE, begin, 0, 0, index, len(result), 0, 0)


def _follow_pickling():
    # put() returns at once; the queue's feeder thread serialises afterwards.
    from multiprocessing.reduction import ForkingPickler

    owner, original = _where_defined(ForkingPickler, "dumps")
    if (id(owner), "dumps") in _replaced:
        return
    ForkingPickler.dumps = classmethod(
        _around(original.__func__, lambda *_: _now(), _after_pickle)
    )
    _replaced.add((id(owner), "dumps"))


class _Pin:
    def __init__(self):
        self.got = 0

    def took(self, index, now):
        self.got = now

    def puts(self, message, index, now):
        if index >= 0 and self.got:
            _event(_PIN_COPY, self.got, 0, 0, index, 0, 0, 0, now)
            self.got = 0


def _wrap_pin_loop(module):
    import functools

    name = "_pin_memory_loop"
    function = module._pin_memory_loop
    if (id(module), name) in _replaced:
        return
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]

    @functools.wraps(function)
    def loop(*args, **kwargs):
        try:
            followed = list(args)
            pin = _Pin()
            queue = _argument(names, "in_queue", followed, kwargs)
            _set_argument(names, "in_queue", followed, kwargs, _InQueue(queue, _PIN_WAIT, pin.took))
            out = _argument(names, "out_queue", followed, kwargs)
            _set_argument(names, "out_queue", followed, kwargs, _OutQueue(out, _PIN_PUT, pin.puts))
            args = followed
        except Exception:
            pass
        return function(*args, **kwargs)

    module._pin_memory_loop = loop
    _replaced.add((id(module), name))
