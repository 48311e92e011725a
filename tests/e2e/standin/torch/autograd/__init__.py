from . import profiler
