"""Trains a small MLP compiled on made-up data; fails unless the step is one graph that the loss shows to work."""

import dlc
import numpy as np

nn, F = dlc.nn, dlc.nn.functional


def main() -> None:
    dlc.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = dlc.optim.AdamW(model.parameters(), lr=1e-2)

    @dlc.compile
    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    x = dlc.tensor(np.random.RandomState(0).randn(256, 64).astype(np.float32))
    y = dlc.tensor(np.arange(256) % 10)
    losses = [float(step(x, y)) for _ in range(60)]
    stats = dlc.compile_stats()
    print(
        f"dlc {dlc.__version__}: loss {losses[0]:.3f} -> {losses[-1]:.5f}, {stats['compilations']} compilation,",
        end=" ",
    )
    print(f"{stats['breaks']} breaks, {stats['fallbacks']} fallbacks, {stats['hits']} hits")
    assert losses[-1] < 0.05 * losses[0]
    assert (stats["breaks"], stats["fallbacks"]) == (0, 0)


if __name__ == "__main__":
    main()
