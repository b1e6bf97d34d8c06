"""Trains a small MLP or CNN on scikit-learn's handwritten digits; the whole training step is one compiled function.

Runs under PyTorch as well: let the three import lines below say torch instead of dlc.
"""

import dlc as torch
import dlc.nn.functional as F
from dlc import nn

import argparse
import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

BATCH = 64
EPOCHS = 20
RATES = {"mlp": 2e-3, "cnn": 5e-3}


class MLP(nn.Module):
    """Three linear layers over the flattened 8x8 image."""

    def __init__(self, width=128):
        super().__init__()
        self.fc1 = nn.Linear(64, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, 10)

    def forward(self, x):
        x = F.relu(self.fc1(x.flatten(1)))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


class CNN(nn.Module):
    """Two blocks of convolution, batch norm, ReLU and pooling, then a linear layer."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(32)
        self.dropout = nn.Dropout(dropout) if dropout else None
        self.fc = nn.Linear(32 * 2 * 2, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        x = x.flatten(1)
        if self.dropout is not None:
            x = self.dropout(x)
        return self.fc(x)


MODELS = {"mlp": MLP, "cnn": CNN}


def load_data(seed=0):
    """(train images, train labels, test images, test labels) as NumPy arrays; images are N x 1 x 8 x 8 in [0, 1]."""
    digits = load_digits()
    images = (digits.images / 16).astype(np.float32)[:, None]
    labels = digits.target.astype(np.int64)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=0.2, random_state=seed, stratify=labels
    )
    return train_x, train_y, test_x, test_y


def initialize(model, seed=0):
    """Fills the parameters from NumPy's generator, so that every framework starts from the same numbers."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            shape = tuple(p.shape)
            if len(shape) > 1:
                values = rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
            else:
                values = np.ones(shape) if "bn" in name and name.endswith("weight") else np.zeros(shape)
            p.copy_(torch.from_numpy(np.asarray(values, dtype=np.float32)))
    return model


def make_step(model, optimizer):
    """One training step: forward, loss, backward, optimizer, gradients cleared."""

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def setup(kind, seed=0, dropout=0.0):
    """A model with its optimizer, ready for `make_step`."""
    torch.manual_seed(seed)
    model = initialize(MLP() if kind == "mlp" else CNN(dropout), seed)
    return model, torch.optim.Adam(model.parameters(), lr=RATES[kind])


def batches(x, y, epochs, seed=0):
    """Shuffled batches; the last one of an epoch is smaller."""
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for first in range(0, len(x), BATCH):
            rows = order[first : first + BATCH]
            yield torch.from_numpy(x[rows]), torch.from_numpy(y[rows])


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        guess = model(torch.from_numpy(x)).argmax(1)
    model.train()
    return float((guess == torch.from_numpy(y)).float().mean())


def train(kind, epochs=EPOCHS, compiled=True, seed=0, dropout=0.0, on_step=None):
    """Trains one model. Returns it with the losses of all steps and the seconds each took."""
    train_x, train_y, test_x, test_y = load_data(seed)
    model, optimizer = setup(kind, seed, dropout)
    step = make_step(model, optimizer)
    if compiled:
        step = torch.compile(step)
    total = epochs * -(-len(train_x) // BATCH)
    losses, seconds = [], []
    for i, (x, y) in enumerate(batches(train_x, train_y, epochs, seed)):
        optimizer.param_groups[0]["lr"] = RATES[kind] * (1 - 0.9 * i / total)
        start = time.perf_counter()
        losses.append(float(step(x, y)))
        seconds.append(time.perf_counter() - start)
        if on_step is not None:
            on_step(i, total, losses[-1])
    return {
        "model": model,
        "step": step,
        "losses": losses,
        "seconds": seconds,
        "accuracy": accuracy(model, test_x, test_y),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=sorted(MODELS), default="mlp")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--eager", action="store_true", help="do not compile")
    parser.add_argument("--dropout", type=float, default=0.0, help="of the CNN")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    def report(i, total, loss):
        if i % 20 == 0 or i == total - 1:
            print(f"step {i:4d}/{total}  loss {loss:.4f}", flush=True)

    result = train(args.model, args.epochs, not args.eager, args.seed, args.dropout, report)
    ms = 1e3 * float(np.median(result["seconds"]))
    print(f"test accuracy {result['accuracy']:.4f}, {ms:.3f} ms a step, first step {result['seconds'][0]:.2f} s")


if __name__ == "__main__":
    main()
