"""idlescope_get_status of the recorder in this process, by ctypes."""
import ctypes


class Status(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("recording", ctypes.c_int),
                ("window_open", ctypes.c_int), ("windows", ctypes.c_uint32),
                ("steps", ctypes.c_uint64), ("file_bytes", ctypes.c_uint64),
                ("path", ctypes.c_char * 1024)]


def status():
    out = Status()
    out.size = ctypes.sizeof(out)
    ctypes.CDLL(None).idlescope_get_status(ctypes.byref(out))
    return out
