"""Datasets and the loader."""

import dlc
import pytest
from dlc.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split


def test_tensor_dataset_batches():
    data = TensorDataset(dlc.arange(10).view(5, 2), dlc.arange(5))
    batches = list(DataLoader(data, batch_size=2))
    assert [b[1].tolist() for b in batches] == [[0, 1], [2, 3], [4]] and batches[0][0].tolist() == [[0, 1], [2, 3]]
    assert len(DataLoader(data, batch_size=2, drop_last=True)) == 2
    assert data[1][0].tolist() == [2, 3]


def test_shuffling_follows_the_seed():
    data = TensorDataset(dlc.arange(20))
    loader = DataLoader(data, batch_size=20, shuffle=True)
    dlc.manual_seed(1)
    first, second = [next(iter(loader))[0].tolist() for _ in range(2)]
    dlc.manual_seed(1)
    assert next(iter(loader))[0].tolist() == first != second and sorted(first) == list(range(20))


def test_own_dataset_and_collation():
    class Squares(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            return {"x": i, "y": float(i * i), "name": str(i)}

    batch = next(iter(DataLoader(Squares(), batch_size=3)))
    assert batch["x"].tolist() == [0, 1, 2] and batch["y"].tolist() == [0, 1, 4] and batch["name"] == ["0", "1", "2"]
    assert [s["x"] for s in DataLoader(Squares(), batch_size=None)] == [0, 1, 2, 3]
    with pytest.raises(NotImplementedError):
        DataLoader(Squares(), num_workers=2)


def test_subsets():
    data = TensorDataset(dlc.arange(10))
    assert Subset(data, [3, 5])[1][0].item() == 5
    a, b = random_split(data, [7, 3])
    assert sorted(int(x[0]) for part in (a, b) for x in part) == list(range(10))
    with pytest.raises(ValueError):
        random_split(data, [1, 2])
