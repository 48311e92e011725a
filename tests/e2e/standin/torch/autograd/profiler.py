"""The calls around Kineto, in PyTorch's order: prepare and enable at the start of a session,
disable at its end. `backend` is what a session does with CUPTI; tests set it."""

backend = None


def _prepare_profiler(config, activities):
    if backend is not None:
        backend.prepare()


def _enable_profiler(config, activities):
    if backend is not None:
        backend.enable()


def _disable_profiler():
    if backend is not None:
        backend.disable()


class profile:
    def __enter__(self):
        _prepare_profiler(None, None)
        _enable_profiler(None, None)
        return self

    def __exit__(self, *_):
        _disable_profiler()
