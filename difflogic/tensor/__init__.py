"""Tensors on devices with automatic differentiation, for policies, critics and custom losses.

Operations are methods of `Tensor`, `gathered` selects rows of several tensors, `nn` contains layers, `optim` contains
the optimiser, and `to_device` copies tensors and layers to another device.
"""

from difflogic.tensor import nn as nn
from difflogic.tensor import optim as optim
from difflogic.tensor.nn import to_device as to_device
from difflogic.tensor.tensor import Tensor as Tensor
from difflogic.tensor.tensor import gathered as gathered
