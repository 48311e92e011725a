# Loaders that are not PyTorch's DataLoader: said by name, and their next() is timed, so that
# the time is never taken for host code of the training loop. What happens inside them is not
# followed.


class _Foreign:
    # One kind of iterator of another library.
    def __init__(self, name):
        self.name, self.iterators = name, {}

    def state(self, iterator):
        # [number, delivered]; kept by id: these classes do not always take attributes.
        state = self.iterators.get(id(iterator))
        if state is None:
            global _iterators
            _iterators += 1
            if len(self.iterators) > 1000:
                self.iterators.clear()
            state = self.iterators[id(iterator)] = [_iterators, 0]
            now = _now()
            _event(_UNSEEN, now, state[0], 0, -1, _names.id(self.name), 0, 0, now)
            user, innermost = _site(sys._getframe(2))
            _event(_SITE, now, state[0], 0, -1, _names.id(user), _names.id(innermost), -1, now)
        return state

    def before(self, iterator, *_):
        return (_now(), self.state(iterator))

    def after(self, token, args, result, error):
        if token is None:
            return
        begin, state = token
        if error is not None and issubclass(error, StopIteration):
            _event(_END, begin, state[0], 0, -1, -1, -1, 0)
            self.iterators.pop(id(args[0]), None)
            return
        _event(_NEXT, begin, state[0], 0, state[1], -1, -1, error is not None)
        state[1] += 1
        _delivered()


def _follow_foreign(name, class_name, method="__next__"):
    def patch(module):
        cls = getattr(module, class_name)
        foreign = _Foreign(name)
        _replace_method(cls, method, foreign.before, foreign.after)

    return patch

