"""A stand-in for PyTorch, for interpreters that have none: only what the recorder hooks, with
PyTorch's names and calling order. Written for these tests."""

from . import version
from . import serialization
from .serialization import save
from . import compiler
from . import autograd
from . import optim
from . import utils
from .utils import data

__version__ = version.__version__
