import multiprocessing

from . import _utils


class DataLoader:
    def __init__(self, dataset, batch_size=1, num_workers=0, collate_fn=list):
        self.dataset, self.batch_size, self.num_workers = dataset, batch_size, num_workers
        self.collate_fn = collate_fn
        self.check_worker_number_rationality()

    def check_worker_number_rationality(self):
        pass

    def __iter__(self):
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        return _MultiProcessingDataLoaderIter(self)


class _BaseDataLoaderIter:
    def __init__(self, loader):
        size, step = len(loader.dataset), loader.batch_size
        self._sampler_iter = iter([list(range(i, min(i + step, size)))
                                   for i in range(0, size, step)])
        self._num_yielded = 0
        self._num_workers = loader.num_workers
        self._pin_memory = False
        self._dataset, self._collate_fn = loader.dataset, loader.collate_fn

    def __iter__(self):
        return self

    def _next_index(self):
        return next(self._sampler_iter)

    def __next__(self):
        data = self._next_data()
        self._num_yielded += 1
        return data


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader):
        super().__init__(loader)
        self._dataset_fetcher = _utils.fetch._MapDatasetFetcher(loader.dataset, loader.collate_fn)

    def _next_data(self):
        return self._dataset_fetcher.fetch(self._next_index())


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader):
        super().__init__(loader)
        self._shutdown = False
        context = multiprocessing.get_context("fork")
        self._index_queue, self._data_queue = context.Queue(), context.Queue()
        self._workers = [
            context.Process(target=_utils.worker._worker_loop,
                            args=(loader.dataset, self._index_queue, self._data_queue,
                                  loader.collate_fn, number))
            for number in range(loader.num_workers)]
        for worker in self._workers:
            worker.start()
        self._task_info, self._tasks_outstanding = {}, 0
        self._rcvd_idx = self._send_idx = 0
        self._reset(loader)

    def _reset(self, loader):
        for samples in self._sampler_iter:
            self._index_queue.put((self._send_idx, samples))
            self._task_info[self._send_idx] = (0,)
            self._send_idx += 1
            self._tasks_outstanding += 1

    def _get_data(self):
        return self._data_queue.get()

    def _next_data(self):
        if self._rcvd_idx == self._send_idx:
            self._shutdown_workers()
            raise StopIteration
        while len(self._task_info[self._rcvd_idx]) < 2:
            index, data = self._get_data()
            self._tasks_outstanding -= 1
            self._task_info[index] += (data,)
        data = self._task_info.pop(self._rcvd_idx)[1]
        self._rcvd_idx += 1
        return data

    def _shutdown_workers(self):
        if not self._shutdown:
            self._shutdown = True
            for _ in self._workers:
                self._index_queue.put(None)
            for worker in self._workers:
                worker.join()
