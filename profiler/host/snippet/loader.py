# The DataLoader in the process that iterates over it.
#
# One batch is known by (iterator, epoch, index). Names of attributes are PyTorch's, stable from
# 1.13 to 2.11 unless noted.
(
    _CREATE,
    _NEXT,
    _WAIT,
    _END,
    _RESET,
    _INDEX,
    _SHUTDOWN,
    _WORKER_STARTED,
    _SITE,
    _UNSEEN,
    _PIN_INLINE,
) = range(1, 12)
_DATASET = 42
_FLAG_PIN, _FLAG_PERSISTENT, _FLAG_ITERABLE, _FLAG_OUT_OF_ORDER = 1, 2, 4, 8
_FLAG_START = {"fork": 16, "spawn": 32, "forkserver": 64, "threads": 128}


class _State:
    # What we remember of one loader iterator.
    __slots__ = ("number", "epoch", "waited", "index_end", "in_next", "in_index")

    def __init__(self, number):
        self.number, self.epoch, self.waited, self.index_end = number, -1, -1, 0
        # Subclasses (StatefulDataLoader) call the base's method, which is followed too: the
        # outermost call counts.
        self.in_next = self.in_index = False


_iterators = 0


def _state(iterator):
    state = iterator.__dict__.get("_idlescope")
    if state is None:
        global _iterators
        _iterators += 1
        state = iterator.__dict__["_idlescope"] = _State(_iterators)
    return state


def _epoch(state):
    return state.epoch if state.epoch > 0 else 0


def _ready_and_in_flight(iterator):
    ready = iterator._data_queue.qsize()
    if iterator._pin_memory:
        ready += iterator._worker_result_queue.qsize()
    stored = 0
    for info in iterator._task_info.values():
        if len(info) == 2:  # (worker, data): arrived before its turn
            stored += 1
    return ready + stored, iterator._tasks_outstanding + stored


# --- next()


def _before_next(iterator, *_):
    state = _state(iterator)
    if state.in_next:
        return None
    attributes = iterator.__dict__
    state.waited = -1
    if "_rcvd_idx" in attributes:
        ready, in_flight = _quietly(_ready_and_in_flight, iterator) or (-1, -1)
        index = -1
    else:
        ready = in_flight = -1
        index = attributes.get("_num_yielded", -1)
        _context(state.number, _epoch(state), index, -1)
        state.index_end = 0
    state.in_next = True
    return (_now(), state, ready, in_flight, index)


def _after_next(token, args, result, error):
    if token is None:
        return
    end = _now()
    begin, state, ready, in_flight, index = token
    state.in_next = False
    iterator = args[0]
    epoch = _epoch(state)
    if error is not None and issubclass(error, StopIteration):
        _event(_END, begin, state.number, epoch, -1, ready, in_flight, 0, end)
        return
    if index < 0:
        attributes = iterator.__dict__
        index = attributes["_rcvd_idx"] - 1
        if state.waited >= 0 and not attributes.get("_in_order", True):
            index = state.waited
    elif state.index_end:
        _event(_WAIT, state.index_end, state.number, epoch, index, 0, 0, 0, end)
        if iterator._pin_memory and error is None:
            _event(_PIN_INLINE, _fetch_end(), state.number, epoch, index, 0, 0, 0, end)
    _event(_NEXT, begin, state.number, epoch, index, ready, in_flight, error is not None, end)
    _delivered()


def _before_call(iterator, *_):
    return _now()


def _after_get_data(begin, args, result, error):
    index = -1
    if type(result) is tuple and result and type(result[0]) is int:
        index = result[0]
    state = _state(args[0])
    state.waited = index
    _event(_WAIT, begin, state.number, _epoch(state), index, 0, 0, 0)


def _before_index(iterator, *_):
    state = _state(iterator)
    if state.in_index:
        return None
    state.in_index = True
    return _now()


def _after_index(begin, args, result, error):
    if begin is None:
        return
    state = _state(args[0])
    state.in_index = False
    if error is not None:
        return
    end = _now()
    _event(_INDEX, begin, state.number, _epoch(state), -1, 0, 0, 0, end)
    state.index_end = end


# --- construction, epochs, end


def _start_method(iterator):
    workers = iterator.__dict__.get("_workers")
    if not workers:
        return None
    if not hasattr(workers[0], "pid"):
        return "threads"
    method = getattr(workers[0], "_start_method", None)
    if method is None:
        import multiprocessing

        method = multiprocessing.get_start_method(allow_none=True)
    return method


def _flags(iterator):
    a = iterator.__dict__
    flags = _FLAG_PIN if a.get("_pin_memory") else 0
    if a.get("_persistent_workers"):
        flags |= _FLAG_PERSISTENT
    if a.get("_dataset_kind") == 1:  # _DatasetKind.Iterable
        flags |= _FLAG_ITERABLE
    if not a.get("_in_order", True):
        flags |= _FLAG_OUT_OF_ORDER
    return flags | _FLAG_START.get(_start_method(iterator), 0)


_sites = None  # loader → (user site, innermost site)


def _after_loader_init(token, args, result, error):
    # check_worker_number_rationality() is the last line of DataLoader.__init__ in all versions;
    # __init__ itself is left alone because Lightning and others read its signature.
    global _sites
    if _sites is None:
        import weakref

        _sites = weakref.WeakKeyDictionary()
    _sites[args[0]] = _site(sys._getframe(1).f_back)


def _after_init(begin, args, result, error):
    if error is not None:
        return
    iterator, loader = args[0], args[1]
    end = _now()
    state = _state(iterator)
    if state.epoch < 0:
        state.epoch = 0
    flags = _flags(iterator)
    number = state.number
    a = iterator.__dict__
    prefetch = a.get("_prefetch_factor") or 0
    _event(_CREATE, begin, number, 0, -1, a.get("_num_workers", -1), prefetch, flags, end)
    sites = _sites.get(loader) if _sites is not None else None
    user, innermost = sites or _site(sys._getframe(1))
    if not user:  # constructed inside a library: the line that iterates tells more
        user = _site(sys._getframe(1))[0]
    size = getattr(loader, "batch_size", None)
    if type(size) is not int:
        size = getattr(getattr(loader, "batch_sampler", None), "batch_size", None)
    if type(size) is not int:
        size = -1
    _event(_SITE, end, number, 0, -1, _names.id(user), _names.id(innermost), size, end)
    dataset = _names.id(_class_name(a.get("_dataset")))
    collate = _names.id(_function_name(a.get("_collate_fn")))
    _event(_DATASET, end, number, 0, -1, flags, dataset, collate, end)
    for index, worker in enumerate(a.get("_workers", ())):
        identity = getattr(worker, "pid", None) or getattr(worker, "native_id", None) or -1
        _event(_WORKER_STARTED, end, number, 0, -1, index, identity, 0, end)
        if hasattr(worker, "pid"):
            _worker_process(identity)


def _after_reset(begin, args, result, error):
    state = _state(args[0])
    state.epoch += 1
    _event(_RESET, begin, state.number, state.epoch, -1, 0, 0, 0)


def _before_shutdown(iterator, *_):
    # Called at the end of an epoch and again by __del__.
    return None if iterator.__dict__.get("_shutdown", True) else _now()


def _after_shutdown(begin, args, result, error):
    if begin is None:
        return
    state = _state(args[0])
    workers = len(args[0].__dict__.get("_workers", ()))
    _event(_SHUTDOWN, begin, state.number, _epoch(state), -1, workers, 0, 0)


# --- what is replaced


def _patch_iterators(single, multi):
    _replace_method(single, "__init__", _before_call, _after_init)
    _replace_method(multi, "__init__", _before_call, _after_init)
    _replace_method(multi, "_reset", _before_call, _after_reset)
    _replace_method(multi, "_get_data", _before_call, _after_get_data)
    _replace_method(multi, "_shutdown_workers", _before_shutdown, _after_shutdown)


def _patch_dataloader(module):
    import torch

    _torch_version(str(torch.version.__version__))
    base = module._BaseDataLoaderIter
    _replace_method(base, "__next__", _before_next, _after_next)
    _replace_method(base, "_next_index", _before_index, _after_index)
    _patch_iterators(module._SingleProcessDataLoaderIter, module._MultiProcessingDataLoaderIter)
    threads = getattr(module, "_ThreadingDataLoaderIter", None)  # PyTorch PR 161044
    if threads is not None:
        _replace_method(threads, "__init__", _before_call, _after_init)
    _quietly(
        _replace_method,
        module.DataLoader,
        "check_worker_number_rationality",
        None,
        _after_loader_init,
    )
    parts = module._utils
    _quietly(_patch_fetchers, parts.fetch)
    _quietly(_wrap_worker_loops, parts.worker)
    _quietly(_wrap_pin_loop, parts.pin_memory)


def _patch_stateful(module):  # torchdata.stateful_dataloader.stateful_dataloader
    _patch_iterators(
        module._StatefulSingleProcessDataLoaderIter, module._StatefulMultiProcessingDataLoaderIter
    )
    for name in ("_StatefulBaseDataLoaderIter", "_StatefulSingleProcessDataLoaderIter"):
        cls = getattr(module, name, None)
        if cls is not None:
            _replace_method(cls, "__next__", _before_next, _after_next)
            _replace_method(cls, "_next_index", _before_index, _after_index)
