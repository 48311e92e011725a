class _BaseDatasetFetcher:
    def __init__(self, dataset, collate_fn):
        self.dataset, self.collate_fn = dataset, collate_fn


class _MapDatasetFetcher(_BaseDatasetFetcher):
    def fetch(self, possibly_batched_index):
        return self.collate_fn([self.dataset[i] for i in possibly_batched_index])


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    def fetch(self, possibly_batched_index):
        raise NotImplementedError
