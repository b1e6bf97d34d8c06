"""Datasets and a loader that batches them in this process."""

import itertools

from dlc import _C
from dlc._C import Tensor
from dlc._errors import error

__all__ = [
    "BatchSampler",
    "DataLoader",
    "Dataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "Subset",
    "TensorDataset",
    "default_collate",
    "random_split",
]


class Dataset:
    """Samples by index: subclasses define __getitem__ and __len__."""

    def __getitem__(self, index):
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")


class TensorDataset(Dataset):
    """Tuples of the i-th rows of tensors."""

    def __init__(self, *tensors):
        if any(t.shape[0] != tensors[0].shape[0] for t in tensors):
            raise error(AssertionError, "Size mismatch between tensors", "give tensors with equal first sizes")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def __len__(self):
        return self.tensors[0].shape[0]


class Subset(Dataset):
    """The samples of a dataset at `indices`."""

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index):
        return self.dataset[self.indices[index]]

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None):
    """Random disjoint subsets of the given lengths (or fractions that sum to 1)."""
    total = len(dataset)
    if all(isinstance(n, float) for n in lengths) and abs(sum(lengths) - 1) < 1e-6:
        sizes = [int(total * f) for f in lengths]
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
        lengths = sizes
    if sum(lengths) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = _C.randperm(total, generator=generator).tolist()
    ends = list(itertools.accumulate(lengths))
    return [Subset(dataset, order[end - n : end]) for end, n in zip(ends, lengths, strict=True)]


class Sampler:
    """An order of indices: subclasses define __iter__."""

    def __iter__(self):
        raise NotImplementedError


class SequentialSampler(Sampler):
    """0, 1, 2, ..."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    """All indices in random order, or `num_samples` of them drawn with replacement."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator

    @property
    def num_samples(self):
        """How many indices an epoch has."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        n = len(self.data_source)
        if self.replacement:
            yield from _C.randint(n, (self.num_samples,), generator=self.generator).tolist()
        else:
            yield from itertools.islice(_C.randperm(n, generator=self.generator).tolist(), self.num_samples)

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of indices from another sampler."""

    def __init__(self, sampler, batch_size, drop_last):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise error(
                ValueError,
                f"batch_size should be a positive integer value, but got batch_size={batch_size}",
                "give 1 or more, or None for no batches",
            )
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        batch = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self):
        full, rest = divmod(len(self.sampler), self.batch_size)
        return full + (rest > 0 and not self.drop_last)


def default_collate(batch):
    """Stacks tensors (and numbers) of equal places in the samples."""
    first = batch[0]
    if isinstance(first, Tensor):
        return _C.stack(batch, 0)
    if isinstance(first, (bool, int, float)):
        return _C.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, dict):
        return {key: default_collate([sample[key] for sample in batch]) for key in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(list(column)) for column in zip(*batch, strict=True)))
    if isinstance(first, (list, tuple)):
        return [default_collate(list(column)) for column in zip(*batch, strict=True)]
    if hasattr(first, "__array__"):
        return _C.stack([_C.as_tensor(sample) for sample in batch], 0)
    raise TypeError(
        f"default_collate: batch must contain tensors, numbers, dicts or lists; found {type(first).__name__}"
    )


class DataLoader:
    """Batches of a dataset. A TensorDataset is gathered by one indexing op a batch."""

    def __init__(
        self, dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None, num_workers=0, collate_fn=None,
        pin_memory=False, drop_last=False, timeout=0, worker_init_fn=None, multiprocessing_context=None,
        generator=None, *, prefetch_factor=None, persistent_workers=False, pin_memory_device="",
    ):  # fmt: skip
        if num_workers:
            raise NotImplementedError("DataLoader: worker processes are not supported\nuse num_workers=0")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None and (batch_size != 1 or shuffle or sampler is not None or drop_last):
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
        if sampler is None:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.num_workers = 0
        self.sampler = sampler
        if batch_sampler is None and batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_sampler = batch_sampler
        self._default_collate = collate_fn is None
        self.collate_fn = collate_fn or (default_collate if batch_sampler is not None else lambda sample: sample)

    def __iter__(self):
        if self.batch_sampler is None:
            for index in self.sampler:
                yield self.collate_fn(self.dataset[index])
            return
        whole = self._default_collate and type(self.dataset) is TensorDataset
        for indices in self.batch_sampler:
            if whole:
                rows = _C.tensor(indices, dtype=_C.int64)
                yield [t.index_select(0, rows) for t in self.dataset.tensors]
            else:
                yield self.collate_fn([self.dataset[i] for i in indices])

    def __len__(self):
        return len(self.batch_sampler) if self.batch_sampler is not None else len(self.sampler)
