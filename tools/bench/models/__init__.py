"""The models of `./dev bench`, each written once: a file here is loaded for dlc and for PyTorch by tools/bench/programs.py.

A function of the files gives one model as a Program; its parameters are the sizes, its defaults those of the table.
"""

from dataclasses import dataclass, field

FILES = {
    "dense": ("small_mlp", "mlp", "pointwise", "softmax_ce", "train_mlp"),
    "transformers": ("encoder", "decode", "train_gpt"),
    "convolutional": ("resnet18", "mobilenet", "train_cnn"),
    "recurrent": ("rnn",),
}
# In the order of the table.
NAMES = (
    "small_mlp", "mlp", "pointwise", "softmax_ce", "encoder", "decode", "resnet18", "mobilenet", "rnn",
    "train_mlp", "train_gpt", "train_cnn",
)  # fmt: skip
TRAINING = ("train_mlp", "train_gpt", "train_cnn")


@dataclass
class Program:
    """A model with its inputs.

    module: what has the weights. step: what is called with the inputs and compiled; the module, or one training step of
    the models in TRAINING.
    inputs: NumPy arrays. feedback: output index -> input index, for a model whose outputs are its next inputs.
    finish: called when the module has its weights. period: so many calls after which the inputs start anew (with feedback). dynamic: {input index: dims that vary}.
    """

    module: object
    step: object
    inputs: tuple
    feedback: dict = field(default_factory=dict)
    period: int = 1
    dynamic: dict = field(default_factory=dict)
    finish: object = None
