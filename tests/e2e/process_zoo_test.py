"""Processes of all kinds: shells, compilers, exec, pools, forks that skip the C library,
torchrun, static programs, environments rebuilt without us, threads that fork."""

import json
import os
import shutil
import subprocess
import sys
import unittest

import harness
import trace_events

HERE = os.path.dirname(os.path.abspath(__file__))


class WithoutPyTorch(harness.Scratch):
    """Jobs that never import PyTorch leave nothing and behave as ever."""

    def injected(self, command, **env):
        return self.run_command(
            command, env={"LD_PRELOAD": harness.LIBRARY, "IDLESCOPE_OUTPUT": self.path("out"),
                          **env})

    def test_ordinary_programs_leave_nothing(self):
        self.write("hello.c", "#include <stdio.h>\nint main(void){puts(\"hi\");return 3;}\n")
        for command, code, output in (
                (["/bin/sh", "-c", "echo a | cat; exit 5"], 5, b"a\n"),
                (["ls", "/does/not/exist"], 2, b""),
                (["gcc", self.path("hello.c"), "-o", self.path("hello")], 0, b""),
                ([self.path("hello")], 3, b"hi\n"),
                (["bash", "-c", "exec python3 -S -I -c 'print(1)'"], 0, b"1\n"),
                ([sys.executable, "-c", "import json; print(json.dumps([1]))"], 0, b"[1]\n")):
            if shutil.which(command[0]) is None and not os.path.exists(command[0]):
                continue
            with self.subTest(command=command):
                done = self.injected(command)
                self.assertEqual((done.returncode, done.stdout), (code, output), done.stderr)
        self.assertFalse(os.path.exists(self.path("out")))

    def test_a_static_program_is_left_alone(self):
        self.write("s.c", "#include <stdio.h>\nint main(void){puts(\"static\");return 0;}\n")
        built = self.run_command(["gcc", "-static", self.path("s.c"), "-o", self.path("s")])
        if built.returncode != 0:
            self.skipTest("no static C library")
        self.assertEqual(self.injected([self.path("s")]).stdout, b"static\n")

    def test_children_inherit_the_directory_and_the_entry_points(self):
        done = self.run_command(
            ["/bin/sh", "-c", "echo $IDLESCOPE_OUTPUT; echo $CUDA_INJECTION64_PATH; "
                              "echo $NVTX_INJECTION64_PATH"],
            env={"LD_PRELOAD": harness.LIBRARY})
        output, cuda, nvtx = done.stdout.decode().split()
        self.assertTrue(output.startswith(self.folder + "/idlescope-sh-"), output)
        self.assertEqual((cuda, nvtx), (harness.LIBRARY, harness.LIBRARY))

    def test_what_the_user_set_is_kept(self):
        done = self.injected(["/bin/sh", "-c", "echo $CUDA_INJECTION64_PATH"],
                             CUDA_INJECTION64_PATH="/theirs.so")
        self.assertEqual(done.stdout, b"/theirs.so\n")

    def test_another_preload_is_kept(self):
        self.write("p.c", "#include <unistd.h>\n__attribute__((constructor)) static void f(void)"
                          "{write(2, \"theirs\\n\", 7);}\n")
        self.run_command(["gcc", "-shared", "-fPIC", self.path("p.c"), "-o", self.path("p.so")])
        done = self.injected(["/bin/echo", "x"],
                             LD_PRELOAD=self.path("p.so") + ":" + harness.LIBRARY)
        self.assertEqual((done.stdout, done.stderr), (b"x\n", b"theirs\n"))


ZOO_JOB = r"""
import ctypes, json, multiprocessing, os, subprocess, sys, threading
import torch
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, index):
        return torch.tensor(index)

def once(_=None):
    return sum(1 for _ in DataLoader(Numbers(), batch_size=2))

def in_child(fork):
    pid = fork()
    if pid == 0:
        os._exit(0 if once() == 3 else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

libc = ctypes.CDLL(None)
done = {}
done["main"] = once()
done["os.fork"] = in_child(os.fork)
libc.syscall.restype = ctypes.c_long
done["syscall fork"] = in_child(lambda: libc.syscall(57 if os.uname().machine == "x86_64" else 220,
                                                     17, 0, 0, 0, 0))
if hasattr(libc, "_Fork"):
    done["_Fork"] = in_child(libc._Fork)
with multiprocessing.get_context("fork").Pool(2) as pool:
    done["pool"] = sum(pool.map(once, range(4)))
done["shell"] = subprocess.run(["/bin/sh", "-c", "exit 7"]).returncode
here = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "CUDA_INJECTION64_PATH")}
done["without us"] = subprocess.run([sys.executable, "-c", "print(end='')"], env=here).returncode
results = []
threads = [threading.Thread(target=lambda: results.append(once())) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
done["threads"] = sum(results)
os.closerange(3, 4096)
done["descriptors closed"] = once()
done["workers after that"] = sum(1 for _ in DataLoader(Numbers(), batch_size=2, num_workers=2))
print(json.dumps(done))
sys.stdout.flush()
os.execv("/bin/sh", ["sh", "-c", "exit 9"])
"""

RANK_JOB = r"""
import os, torch, torch.distributed as dist
from torch.utils.data import DataLoader, Dataset
class Numbers(Dataset):
    def __len__(self): return 8
    def __getitem__(self, index): return torch.tensor(index)
dist.init_process_group("gloo")
n = sum(1 for _ in DataLoader(Numbers(), batch_size=2, num_workers=1))
total = torch.tensor(n)
dist.all_reduce(total)
assert total.item() == 4 * dist.get_world_size()
dist.destroy_process_group()
"""


class Zoo(harness.Scratch):
    python = None

    def setUp(self):
        super().setUp()
        if self.python is None:
            self.skipTest("no Python with PyTorch")
        self.recorded = {"LD_PRELOAD": harness.LIBRARY, "IDLESCOPE_OUTPUT": self.path("out")}

    def test_forks_pools_threads_exec(self):
        self.write("zoo.py", ZOO_JOB)
        done = self.run_command([self.python, self.path("zoo.py")], env=self.recorded,
                                timeout=240)
        self.assertEqual(done.returncode, 9, done.stderr.decode())
        said = json.loads(done.stdout)
        self.assertEqual(said.pop("shell"), 7)
        self.assertEqual(said.pop("without us"), 0)
        for name in ("os.fork", "syscall fork", "_Fork"):
            self.assertEqual(said.pop(name, 0), 0, name)
        self.assertEqual(said, {"main": 3, "pool": 12, "threads": 9, "descriptors closed": 3,
                                "workers after that": 3})
        traces = trace_events.read_directory(self.path("out"))
        by_pid = {t.pid: t for t in traces}
        self.assertEqual(len(by_pid), len(traces))
        next_counts = sorted((t.count("next") for t in traces if t.count("next")), reverse=True)
        # main 3 + threads 9 + closed 3 + workers 3; three forks of 3; the pool's 12 on 1-2 workers.
        forks = 3 if hasattr(__import__("ctypes").CDLL(None), "_Fork") else 2
        self.assertEqual(sum(next_counts), 18 + 3 * forks + 12)
        self.assertEqual(next_counts[0], 18)
        self.assertEqual(sum(1 for t in traces if t.role == "worker"), 2)

    def test_torchrun(self):
        self.write("rank.py", RANK_JOB)
        done = self.run_command(
            [self.python, "-m", "torch.distributed.run", "--nproc_per_node=2",
             "--master_port=0", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0",
             self.path("rank.py")], env=self.recorded, timeout=240)
        if done.returncode != 0:
            plain = self.run_command(
                [self.python, "-m", "torch.distributed.run", "--nproc_per_node=2",
                 "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", self.path("rank.py")],
                timeout=240)
            if plain.returncode != 0:
                self.skipTest("torchrun does not work here without us either")
        self.assertEqual(done.returncode, 0, done.stderr.decode()[-2000:])
        traces = trace_events.read_directory(self.path("out"))
        ranks = {t.process.get(10, 0): t for t in traces if t.count("next")}
        self.assertEqual(sorted(ranks), [0, 1])
        for trace in ranks.values():
            self.assertEqual(trace.count("next"), 4)
            self.assertEqual(trace.process.get(12), 2)
        self.assertEqual(sorted(t.count("fetch") for t in traces if t.role == "worker"), [4, 4])

    def test_one_rank_only(self):
        self.write("rank.py", RANK_JOB)
        env = dict(self.recorded, IDLESCOPE_RANKS="1", MASTER_ADDR="127.0.0.1",
                   MASTER_PORT=str(20000 + os.getpid() % 20000), WORLD_SIZE="2")
        both = [subprocess.Popen([self.python, self.path("rank.py")], cwd=self.folder,
                                 env=harness.clean_environment(
                                     dict(env, RANK=str(rank), LOCAL_RANK=str(rank))))
                for rank in range(2)]
        self.assertEqual([p.wait(timeout=240) for p in both], [0, 0])
        traces = trace_events.read_directory(self.path("out"))
        self.assertEqual({t.process.get(10) for t in traces}, {1})


def load_tests(loader, tests, pattern):
    suite = unittest.TestSuite()
    suite.addTests(loader.loadTestsFromTestCase(WithoutPyTorch))
    suite.addTests(harness.for_each_torch(loader, Zoo))
    return suite


if __name__ == "__main__":
    harness.main()
