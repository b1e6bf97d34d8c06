"""Trains a small character GPT on the help topics that come with Python, then samples from it.

Runs under PyTorch as well: let the three import lines below say torch instead of dlc.
"""

import dlc as torch
import dlc.nn.functional as F
from dlc import nn

import argparse
import math
import time

import numpy as np
from pydoc_data.topics import topics

LAYERS, WIDTH, HEADS = 4, 128, 4
BATCH, CONTEXT = 16, 128
STEPS, RATE, WARMUP, CLIP = 300, 4e-3, 20, 1.0


class Text:
    """The characters as numbers: `train` and `held_out` (the last tenth) are int64 arrays."""

    def __init__(self):
        text = "\n".join(topics[name] for name in sorted(topics))
        self.alphabet = sorted(set(text))
        number = {c: i for i, c in enumerate(self.alphabet)}
        data = np.array([number[c] for c in text], dtype=np.int64)
        cut = len(data) - len(data) // 10
        self.train, self.held_out = data[:cut], data[cut:]
        self.number = number

    def encode(self, s):
        return [self.number[c] for c in s]

    def decode(self, numbers):
        return "".join(self.alphabet[i] for i in numbers)


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, WIDTH))


class Block(nn.Module):
    """Attention and a two-layer network, each on normalized input and added to the residual stream."""

    def __init__(self):
        super().__init__()
        self.ln1 = nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.ln2 = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class CharGPT(nn.Module):
    def __init__(self, characters):
        super().__init__()
        self.token = nn.Embedding(characters, WIDTH)
        self.position = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.ln = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, characters, bias=False)

    def forward(self, tokens):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))


def initialize(model, seed=0):
    """Fills the parameters from NumPy's generator, so that every framework starts from the same numbers."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            shape = tuple(p.shape)
            if len(shape) > 1:
                scale = 0.1 if name in ("token.weight", "position.weight") else 0.7 / math.sqrt(shape[1])
                if name == "head.weight":
                    scale = 0.02
                elif name.endswith(("proj.weight", "down.weight")):  # the last matrix before each residual sum
                    scale /= math.sqrt(2 * LAYERS)
                values = rng.standard_normal(shape) * scale
            else:
                values = np.ones(shape) if ".ln" in "." + name and name.endswith("weight") else np.zeros(shape)
            p.copy_(torch.from_numpy(np.asarray(values, dtype=np.float32)))
    return model


def setup(characters, seed=0):
    """A model with its optimizer, ready for `make_step`."""
    torch.manual_seed(seed)
    model = initialize(CharGPT(characters), seed)
    return model, torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.1)


def make_step(model, optimizer):
    """One training step: forward, loss, backward, clipping, optimizer, gradients cleared."""

    def step(x, y):
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def learning_rate(i, steps):
    """Linear warm-up, then half a cosine down to a tenth."""
    if i < WARMUP:
        return RATE * (i + 1) / WARMUP
    return RATE * (0.55 + 0.45 * math.cos(math.pi * (i - WARMUP) / max(1, steps - WARMUP)))


def batches(data, steps, seed=0):
    """Random windows of the text, and the same windows one character later."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        rows = rng.integers(0, len(data) - CONTEXT - 1, BATCH)[:, None] + np.arange(CONTEXT)
        yield torch.from_numpy(data[rows]), torch.from_numpy(data[rows + 1])


def held_out_loss(model, data):
    """Mean loss in nats a character over the text cut into windows."""
    count = (len(data) - 1) // CONTEXT
    x = data[: count * CONTEXT].reshape(count, CONTEXT)
    y = data[1 : count * CONTEXT + 1].reshape(count, CONTEXT)
    total = 0.0
    model.eval()
    with torch.no_grad():
        for first in range(0, count, BATCH):
            rows = slice(first, first + BATCH)
            logits = model(torch.from_numpy(x[rows]))
            total += float(F.cross_entropy(logits.flatten(0, 1), torch.from_numpy(y[rows]).flatten(), reduction="sum"))
    model.train()
    return total / (count * CONTEXT)


def sample(model, text, prompt="The ", count=300, temperature=0.8, seed=0):
    """Continues the prompt character by character."""
    torch.manual_seed(seed)
    numbers = text.encode(prompt)
    model.eval()
    with torch.no_grad():
        for _ in range(count):
            window = torch.tensor([numbers[-CONTEXT:]])
            weights = torch.softmax(model(window)[0, -1] / temperature, -1)
            numbers.append(int(torch.multinomial(weights, 1)))
    model.train()
    return text.decode(numbers)


def train(steps=STEPS, compiled=True, seed=0, on_step=None, schedule=STEPS):
    """Trains the model for `steps` of the `schedule` steps. Returns it with all losses and the seconds each took."""
    text = Text()
    model, optimizer = setup(len(text.alphabet), seed)
    step = make_step(model, optimizer)
    if compiled:
        step = torch.compile(step)
    losses, seconds = [], []
    for i, (x, y) in enumerate(batches(text.train, steps, seed)):
        optimizer.param_groups[0]["lr"] = learning_rate(i, schedule)
        start = time.perf_counter()
        losses.append(float(step(x, y)))
        seconds.append(time.perf_counter() - start)
        if on_step is not None:
            on_step(i, steps, losses[-1])
    return {"model": model, "step": step, "text": text, "losses": losses, "seconds": seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--eager", action="store_true", help="do not compile")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    def report(i, total, loss):
        if i % 20 == 0 or i == total - 1:
            print(f"step {i:4d}/{total}  loss {loss:.4f}", flush=True)

    result = train(args.steps, not args.eager, args.seed, report, args.steps)
    ms = 1e3 * float(np.median(result["seconds"]))
    loss = held_out_loss(result["model"], result["text"].held_out)
    print(f"held-out loss {loss:.4f} nats a character, {ms:.1f} ms a step, first step {result['seconds'][0]:.2f} s")
    print(sample(result["model"], result["text"]))


if __name__ == "__main__":
    main()
