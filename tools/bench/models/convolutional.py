"""Convolutional networks."""

import dlc as torch
import dlc.nn.functional as F
import numpy as np
from dlc import nn

from models import Program


class BasicBlock(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.shortcut = None
        if stride != 1 or inside != outside:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet18(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        blocks, inside = [], width
        for stage, stride in enumerate((1, 2, 2, 2)):
            outside = width << stage
            blocks += [BasicBlock(inside, outside, stride), BasicBlock(outside, outside, 1)]
            inside = outside
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(inside, 1000)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        x = F.adaptive_avg_pool2d(self.blocks(x), (1, 1))
        return self.fc(torch.flatten(x, 1))


def resnet18(width=64, batch=1, size=224):
    """ResNet-18, 1 x 3 x 224 x 224."""
    module = ResNet18(width)
    return Program(module, module, (_normal(batch, 3, size, size),))


def _channels(value):
    """A multiple of 8 near `value`, at least nine tenths of it."""
    rounded = max(8, int(value + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * value else rounded


class ConvNormAct(nn.Sequential):
    def __init__(self, inside, outside, kernel, stride=1, groups=1, activation=None):
        layers = [
            nn.Conv2d(inside, outside, kernel, stride, kernel // 2, groups=groups, bias=False),
            nn.BatchNorm2d(outside, eps=0.001, momentum=0.01),
        ]
        super().__init__(*layers, *([activation()] if activation else []))


class SqueezeExcite(nn.Module):
    def __init__(self, channels, squeezed):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc1, self.fc2 = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)
        self.gate = nn.Hardsigmoid()

    def forward(self, x):
        return x * self.gate(self.fc2(F.relu(self.fc1(self.pool(x)))))


class InvertedResidual(nn.Module):
    def __init__(self, inside, kernel, expanded, outside, excite, activation, stride):
        super().__init__()
        layers = []
        if expanded != inside:
            layers.append(ConvNormAct(inside, expanded, 1, activation=activation))
        layers.append(ConvNormAct(expanded, expanded, kernel, stride, expanded, activation))
        if excite:
            layers.append(SqueezeExcite(expanded, _channels(expanded // 4)))
        layers.append(ConvNormAct(expanded, outside, 1))
        self.block = nn.Sequential(*layers)
        self.residual = stride == 1 and inside == outside

    def forward(self, x):
        return x + self.block(x) if self.residual else self.block(x)


# MobileNetV3-small: kernel, expanded, out, squeeze and excite, Hardswish (else ReLU), stride
MOBILENET = (
    (3, 16, 16, True, False, 2), (3, 72, 24, False, False, 2), (3, 88, 24, False, False, 1),
    (5, 96, 40, True, True, 2), (5, 240, 40, True, True, 1), (5, 240, 40, True, True, 1),
    (5, 120, 48, True, True, 1), (5, 144, 48, True, True, 1), (5, 288, 96, True, True, 2),
    (5, 576, 96, True, True, 1), (5, 576, 96, True, True, 1),
)  # fmt: skip


class MobileNetV3(nn.Module):
    def __init__(self, multiplier):
        super().__init__()

        def scaled(channels):
            return _channels(channels * multiplier)

        inside = scaled(16)
        layers = [ConvNormAct(3, inside, 3, 2, activation=nn.Hardswish)]
        for kernel, expanded, outside, excite, hard, stride in MOBILENET:
            activation = nn.Hardswish if hard else nn.ReLU
            layers.append(
                InvertedResidual(inside, kernel, scaled(expanded), scaled(outside), excite, activation, stride)
            )
            inside = scaled(outside)
        layers.append(ConvNormAct(inside, 6 * inside, 1, activation=nn.Hardswish))
        self.features = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(
            nn.Linear(6 * inside, 1024), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(1024, 1000)
        )

    def forward(self, x):
        return self.classifier(torch.flatten(self.pool(self.features(x)), 1))


def mobilenet(multiplier=1.0, batch=1, size=224):
    """MobileNetV3-small, 1 x 3 x 224 x 224."""
    module = MobileNetV3(multiplier)
    return Program(module, module, (_normal(batch, 3, size, size),))


def train_cnn(width=32, batch=32):
    """A training step of 2 convolutions with BatchNorm, 32 x 1 x 28 x 28, SGD."""
    module = nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(2 * width * 49, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3, momentum=0.9)

    def step(x, y):
        loss = F.cross_entropy(module(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    classes = np.random.default_rng(2).integers(0, 10, batch)
    return Program(module, step, (_normal(batch, 1, 28, 28), classes))


def _normal(*shape):
    return np.random.default_rng(1).standard_normal(shape, dtype=np.float32)
