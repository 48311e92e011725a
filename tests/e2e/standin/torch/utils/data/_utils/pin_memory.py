def _pin_memory_loop(in_queue, out_queue, device_id, done_event):
    raise NotImplementedError
