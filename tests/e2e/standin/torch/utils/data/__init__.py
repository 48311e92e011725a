from . import _utils
from .dataloader import DataLoader
