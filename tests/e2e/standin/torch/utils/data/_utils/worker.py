from . import fetch


def _worker_loop(dataset, index_queue, data_queue, collate_fn, worker_id):
    fetcher = fetch._MapDatasetFetcher(dataset, collate_fn)
    while True:
        task = index_queue.get()
        if task is None:
            return
        index, samples = task
        data_queue.put((index, fetcher.fetch(samples)))
